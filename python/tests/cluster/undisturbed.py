"""What a conversion leaves that nothing disturbs, for others to be compared with."""

from lakes import catalog, commits, content, leftovers


class Undisturbed:
    def __init__(self, tracelake, inputs, lake):
        self.inputs = inputs
        tracelake("convert", "-q", *inputs, "-o", lake, "--run", "all", ok=(0, 3))
        self.rows, self.traces = content(lake), set(commits(lake))

    def words(self, program, lake):
        """The arguments of a driver that does the same."""
        return ["--program", program, "--task-bytes", 1 << 18, *self.inputs, "-o", lake, "--", "--run", "all"]

    def same(self, lake):
        assert content(lake) == self.rows
        assert set(commits(lake)) == self.traces
        assert sorted(r["trace_id"] + ".json" for r in catalog(lake)) == sorted(self.traces), "a row for each input, and one only"
        # A killed writer may leave the empty file of a lock, which no reader sees.
        assert [p for p in leftovers(lake) if not (".tmp-publish-" in p and p.endswith(".lock"))] == []
