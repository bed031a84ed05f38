package lake

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
)

// FuzzLake opens a dataset whose own files hold arbitrary text. Whatever they
// say, no path leads out of the tables, nothing outside is touched, and a
// commit that is read is one that could have been written.
func FuzzLake(f *testing.F) {
	const id = "0123456789abcdef"
	format := `{"format":"` + FormatName + `","schema_version":1,"tables":["traces"],"writer":"x"}`
	commit := `{"trace_id":"` + id + `","run":"r","outcome":"ok","source":{"path":"/a","bytes":1,"mtime_ns":2},"files":[{"table":"launches","path":"launches/run=r/x.parquet","bytes":0,"rows":1}]}`
	for _, c := range []string{
		commit, strings.Replace(commit, "launches/run", "../launches/run", 1), strings.Replace(commit, "launches/run=r", "a/../"+MetaDir, 1),
		strings.Replace(commit, `"run":"r"`, `"run":"../r"`, 1), `{"rank":-1}`, `[]`, `null`, "\x00",
	} {
		f.Add([]byte(format), []byte(c), []byte(""))
	}
	for _, j := range []string{
		`{"dir":"launches/run=r","add":[],"remove":["launches/run=r/x.parquet"],"moves":[{"trace_id":"` + id + `","from":"launches/run=r/x.parquet","to":{"table":"launches","path":"launches/run=r/y.parquet"}}],"staged":"` + MetaDir + `/.tmp-x"}`,
		`{"dir":"../..","staged":"` + MetaDir + `/.tmp-x"}`, `{"remove":["a/../../outside"]}`, `{"staged":"` + MetaDir + `/.tmp-x/../../.."}`,
	} {
		f.Add([]byte(format), []byte(commit), []byte(j))
	}
	f.Fuzz(func(t *testing.T, format, commit, journal []byte) {
		outer := t.TempDir()
		root := filepath.Join(outer, "lake")
		for name, text := range map[string][]byte{
			filepath.Join(root, formatPath): format, filepath.Join(root, commitPath(id)): commit,
			filepath.Join(root, MetaDir, layoutJournal): journal, filepath.Join(root, MetaDir, tempPrefix+"x", ".hidden"): nil,
			filepath.Join(outer, "outside"): nil,
		} {
			if len(text) == 0 && filepath.Base(name) == layoutJournal {
				continue
			}
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if l, err := Open(root); err == nil {
			if l.format.SchemaVersion > schema.Version {
				t.Fatal("a newer version is opened")
			}
			commits, _ := l.Commits()
			for _, c := range commits {
				if c.TraceID != id || !ValidRun(c.Run) || c.Rank != nil && *c.Rank < 0 {
					t.Fatalf("commit %+v", c)
				}
				for _, file := range c.Files {
					if p := path.Clean(file.Path); strings.HasPrefix(p, "..") || strings.HasPrefix(p, MetaDir) || path.IsAbs(p) {
						t.Fatalf("file %q is outside the tables", file.Path)
					}
				}
				_, _ = l.RanksOf(c.Run)
			}
		}
		if l, err := Create(root, "test"); err == nil {
			_, _ = l.Commits()
		}
		left, err := os.ReadDir(outer)
		if err != nil || len(left) != 2 {
			t.Fatalf("%v %v", left, err)
		}
	})
}
