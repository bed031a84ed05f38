package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tracelake/internal/faultfs"
	"tracelake/schema/lake"
)

// everyFaultEnv asks for every operation instead of a sample.
const everyFaultEnv = "TRACELAKE_TEST_EVERY_FAULT"

// errnos are what operations fail with, one after the other.
var errnos = []syscall.Errno{syscall.EIO, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EACCES}

// faultCase is a command that writes below a directory.
type faultCase struct {
	name    string
	prepare func(t *testing.T, dir string) // makes what is there before
	args    func(dir string) []string
}

var faultInputs = []string{"../../testdata/demo/cpu/hf_inductor_compiled_shapes.json.gz", "../../testdata/stormlog/nsys_device_uuid_col.sqlite"}

func converting(more ...string) func(dir string) []string {
	return func(dir string) []string {
		args := []string{"convert", "--tables", "gpu_events,cpu_events", "-o", filepath.Join(dir, "lake")}
		return slices.Concat(args, more, faultInputs)
	}
}

// converted prepares a dataset.
func converted(more ...string) func(t *testing.T, dir string) {
	return func(t *testing.T, dir string) { mustSay(t, converting(more...)(dir)) }
}

func faultCases() []faultCase {
	lakeArgs := func(words ...string) func(string) []string {
		return func(dir string) []string { return append(slices.Clone(words), filepath.Join(dir, "lake")) }
	}
	file := func(name string, words ...string) func(string) []string {
		return func(dir string) []string { return append(slices.Clone(words), "-o", filepath.Join(dir, name)) }
	}
	return []faultCase{
		{"convert", nil, converting()},
		{"convert with little memory", nil, converting("--max-memory", "1KiB", "--row-group", "16")},
		{"convert and merge", nil, converting("--target-file-size", "1MB")},
		{"convert again", converted(), converting("--force", "--compression", "snappy")},
		{"convert again what was merged", converted("--target-file-size", "1MB"), converting("--force", "--compression", "snappy")},
		{"compact", converted(), lakeArgs("compact")},
		{"vacuum", leftovers, lakeArgs("vacuum", "--older-than", "0s")},
		{"redact", nil, file("out.json.gz", "redact", "--key", "k", faultInputs[0])},
		{"redact a report", nil, file("out.sqlite", "redact", "--key", "k", faultInputs[1])},
		{"activities", nil, file("out.jsonl", "activities", "../../testdata/demo/serving/rank0.pt.trace.json.gz")},
	}
}

// leftovers prepares a dataset with what killed writers leave.
func leftovers(t *testing.T, dir string) {
	converted()(t, dir)
	root := filepath.Join(dir, "lake")
	for _, p := range []string{"traces/part-000000000000.parquet", "_tracelake/.tmp-elsewhere-01/traces", "_tracelake/commits/.tmp-1"} {
		p = filepath.Join(root, p)
		if err := errors.Join(os.MkdirAll(filepath.Dir(p), 0o755), os.WriteFile(p, []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// files returns what is below a directory, without locks. Programs know the
// directory by a name, which is left out of texts.
func files(t *testing.T, dir, known string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasSuffix(p, ".lock") {
			return err
		}
		text, err := os.ReadFile(p)
		out[strings.TrimPrefix(p, dir)] = bytes.ReplaceAll(text, []byte(known), nil)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func differ(got, want map[string][]byte) (out []string) {
	for name := range want {
		if _, ok := got[name]; !ok {
			out = append(out, name+" is missing")
		}
	}
	for name := range got {
		if w, ok := want[name]; !ok {
			out = append(out, name+" is too much")
		} else if !bytes.Equal(w, got[name]) {
			out = append(out, name+" differs")
		}
	}
	slices.Sort(out)
	return out
}

// broken returns what is wrong with the commits of a dataset.
func broken(root string) error {
	l, err := lake.Open(root)
	if err != nil {
		if _, none := os.Stat(filepath.Join(root, "_tracelake", "format.json")); none != nil {
			return nil // it has not come so far
		}
		return err
	}
	commits, err := l.Commits()
	if err != nil {
		return err
	}
	for _, c := range commits {
		for _, f := range c.Files {
			if st, err := os.Stat(l.Abs(f.Path)); err != nil || st.Size() != f.Bytes {
				return fmt.Errorf("trace %s is committed and %s is not whole: %w", c.TraceID, f.Path, err)
			}
		}
	}
	return nil
}

// faultRun carries out one case again and again, each time in a new directory.
type faultRun struct {
	c    faultCase
	m    *faultfs.FS
	was  string // what is there before
	want map[string][]byte
	n    int
}

// fresh makes a directory as it is before the command.
func (r *faultRun) fresh(t *testing.T) (dir, backing string) {
	t.Helper()
	r.n++
	name := fmt.Sprintf("%s-%d", strings.ReplaceAll(r.c.name, " ", "-"), r.n)
	dir, backing = filepath.Join(r.m.Dir, name), filepath.Join(r.m.Backing, name)
	temp := filepath.Join(r.m.Backing, "temp")
	if err := errors.Join(os.RemoveAll(temp), os.MkdirAll(temp, 0o755), os.CopyFS(backing, os.DirFS(r.was))); err != nil {
		t.Fatal(err)
	}
	return dir, backing
}

// faulty runs the command with faults, checks what is left, and runs it again
// without. It returns whether there was a fault.
func (r *faultRun) faulty(t *testing.T, p faultfs.Plan) bool {
	t.Helper()
	dir, backing := r.fresh(t)
	defer os.RemoveAll(backing)
	r.m.Set(p)
	code, said := saying(t, r.c.args(dir))
	_, hit := r.m.Stop()
	if len(hit) == 0 {
		return false
	}
	what := fmt.Sprintf("%+v: %v of %d: exit code %d, %q", p, hit[0], len(hit), code, said)
	if err := broken(filepath.Join(backing, "lake")); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	root := filepath.Join(dir, "lake")
	dataset := len(r.want) > 1
	switch code {
	case exitOK: // all was done, but for what the next sweep takes
		if dataset {
			mustSay(t, []string{"vacuum", "--older-than", "0s", root})
		}
		if d := differ(files(t, backing, dir), r.want); len(d) != 0 {
			t.Errorf("%s: no error: %v", what, d)
		}
	case exitFailed, exitPartial, exitInput:
		if !strings.Contains(said, r.m.Dir) {
			t.Errorf("%s: no file is named", what)
		}
		if code != exitFailed && !p.Reads {
			t.Errorf("%s: the input is not to blame", what)
		}
	default:
		t.Errorf("%s: another exit code", what)
	}
	if code, said := saying(t, r.c.args(dir)); code != exitOK {
		t.Errorf("%s: again: exit code %d, %s", what, code, said)
	}
	if dataset {
		mustSay(t, []string{"vacuum", "--older-than", "0s", root})
	}
	if d := differ(files(t, backing, dir), r.want); len(d) != 0 {
		t.Errorf("%s: again: %v", what, d)
	}
	return true
}

// TestEveryOperationFails lets operations of the file system fail in every
// command that writes: changes once, with all after them, and after they were done all
// the same, and reads. Afterwards there is an error that names a file, unless all was
// done; what is committed is whole; and the same command brings about what it
// does without faults, once what is left over was swept.
func TestEveryOperationFails(t *testing.T) {
	every := os.Getenv(everyFaultEnv) != ""
	m := faultfs.Mount(t)
	t.Setenv("HOME", t.TempDir())
	t.Setenv("TMPDIR", filepath.Join(m.Dir, "temp"))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for _, c := range faultCases() {
		t.Run(c.name, func(t *testing.T) {
			r := &faultRun{c: c, m: m, was: filepath.Join(os.Getenv("HOME"), c.name)}
			if err := errors.Join(os.MkdirAll(os.Getenv("TMPDIR"), 0o755), os.Mkdir(r.was, 0o755)); err != nil {
				t.Fatal(err)
			}
			if c.prepare != nil {
				c.prepare(t, r.was)
			}
			total := map[bool]int{} // operations, by whether they read
			for _, reads := range []bool{true, false} {
				dir, backing := r.fresh(t)
				m.Set(faultfs.Plan{Reads: reads})
				mustSay(t, c.args(dir))
				total[reads], _ = m.Stop()
				r.want = files(t, backing, dir)
			}
			if left := files(t, filepath.Join(m.Backing, "temp"), "temp"); len(left) != 0 {
				t.Errorf("temporary files without a fault: %v", left)
			}
			tried := 0
			for kind, p := range []faultfs.Plan{{}, {Last: faultfs.Forever}, {Late: true}, {Reads: true}} {
				stride := 1
				if !every {
					stride = max(1, total[p.Reads]/4)
				}
				for n := 1 + random.IntN(stride); n <= total[p.Reads]; n += stride {
					p.First, p.Errno = n, errnos[(n+kind)%len(errnos)]
					if kind != 1 {
						p.Last = n
					}
					if r.faulty(t, p) {
						tried++
					}
				}
			}
			t.Logf("%d changes, %d reads, %d faults", total[false], total[true], tried)
			if tried == 0 {
				t.Error("no fault")
			}
		})
	}
}
