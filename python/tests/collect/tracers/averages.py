"""The built-in profiler tracer that also keeps what the profiler averaged."""

from tracelake_worker.tracers.torch_profiler import TorchProfiler


class Averages(TorchProfiler):
    name = "averages"

    def profile(self, ctx):
        profiler, trace = super().profile(ctx)
        ctx.write_json("averages.json", {a.key: a.count for a in profiler.key_averages()})
        return profiler, trace
