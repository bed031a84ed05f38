package activity_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/analyze/activity"
)

// request is a line that testdata/reference.py reads.
type request struct {
	Path       string                     `json:"path"`
	Details    []string                   `json:"details"`
	UUIDs      map[int64]string           `json:"device_uuids,omitempty"`
	ByPID      map[int64]map[int64]string `json:"by_pid,omitempty"`
	Attachment string                     `json:"attachment,omitempty"`
}

func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("no go.mod above the test")
	return ""
}

// python returns an interpreter that has the reference package.
func python(t testing.TB) string {
	t.Helper()
	const why = "NOT COMPARED with the stormlog package: set TRACELAKE_PYTHON to a Python that has stormlog " +
		activity.ReferenceVersion + ", or make .venv in the root of the repository"
	for _, bin := range []string{os.Getenv("TRACELAKE_PYTHON"), filepath.Join(root(t), ".venv/bin/python")} {
		if bin == "" {
			continue
		}
		out, err := exec.Command(bin, "-c", "import stormlog; print(stormlog.__version__)").Output()
		if err == nil && strings.TrimSpace(string(out)) == activity.ReferenceVersion {
			return bin
		}
		t.Logf("%s: stormlog %q, %v", bin, out, err)
	}
	t.Skip(why)
	return ""
}

// traces returns every trace of the shared collection that may be there,
// and the cases of this repository.
func traces(t testing.TB) (out []string) {
	t.Helper()
	shared := os.Getenv("TRACELAKE_SHARED")
	if shared == "" {
		shared = filepath.Join(root(t), "../shared")
	}
	dirs := []string{casesDir}
	for _, d := range []string{"kineto", "own", "pathological", "nsys"} {
		dirs = append(dirs, filepath.Join(shared, "traces", d))
	}
	for _, dir := range dirs {
		if _, err := os.Stat(dir); err != nil {
			t.Logf("NOT COMPARED: %v; TRACELAKE_SHARED may name the collection", err)
			continue
		}
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() && isTrace(path) {
				out = append(out, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// isTrace leaves out what stands beside the traces.
func isTrace(path string) bool {
	switch filepath.Ext(path) {
	case ".json":
		return !strings.HasSuffix(path, ".truth.json") && filepath.Base(path) != "INVENTORY.json"
	case ".gz", ".sqlite":
		return true
	}
	return false
}

// reference runs the package in one process and answers requests in turn.
type reference struct {
	in  io.WriteCloser
	out *bufio.Reader
}

func startReference(t *testing.T) *reference {
	t.Helper()
	cmd := exec.Command(python(t), "testdata/reference.py")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("reference: %v", err)
		}
	})
	return &reference{in, bufio.NewReaderSize(out, 1<<20)}
}

// ask returns the rows of the trace and those of each detail as JSON, and the
// message of each refusal, whose detail is "" for the trace.
func (r *reference) ask(t *testing.T, q request) (rows map[string][][]byte, refused map[string]string) {
	t.Helper()
	line, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.in.Write(append(line, '\n')); err != nil {
		t.Fatal(err)
	}
	rows, refused = map[string][][]byte{}, map[string]string{}
	for detail := ""; ; {
		line, err := r.out.ReadBytes('\n')
		if err != nil {
			t.Fatalf("reference: %v", err)
		}
		var mark struct{ Rec, Detail, Message string }
		if len(line) < 300 || bytes.HasPrefix(line, []byte(`{"message"`)) { // no record is that short
			if err := json.Unmarshal(line, &mark); err != nil {
				t.Fatal(err)
			}
		}
		switch mark.Rec {
		case "end":
			return rows, refused
		case "detail":
			detail = mark.Detail
		case "error":
			refused[detail] = mark.Message
		default:
			rows[detail] = append(rows[detail], bytes.TrimSuffix(line, []byte("\n")))
		}
	}
}

// TestLive compares both details of every trace at hand with the reference
// package itself, without options and with all of them.
func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute")
	}
	if raceEnabled {
		t.Skip("SKIPPED: make test runs it without the race detector, which would take ten minutes and has nothing to watch: one goroutine")
	}
	ref := startReference(t)
	records := 0
	for _, path := range traces(t) {
		t.Run(filepath.Join(filepath.Base(filepath.Dir(path)), filepath.Base(path)), func(t *testing.T) {
			trace, err := load(path)
			for _, q := range requests(path) {
				want, refused := ref.ask(t, q)
				if msg, bad := refused[""]; bad {
					if err == nil {
						t.Fatalf("accepted; the reference says %v", msg)
					}
					return
				}
				if err != nil {
					t.Fatalf("refused with %v", err)
				}
				if q.Attachment == "" {
					compareLines(t, lines(t, traceRows(trace)), want[""])
				}
				for _, d := range q.Details {
					got, err := captureLines(t, trace, path, activity.Options{
						Detail: d, AttachmentID: q.Attachment, DeviceUUIDs: q.UUIDs, DeviceUUIDsByPID: q.ByPID,
					})
					if msg, bad := refused[d]; bad {
						if err == nil || err.Error() != msg {
							t.Fatalf("got %v; the reference says %v", err, msg)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s: refused with %v", d, err)
					}
					records += len(got) - 2
					compareLines(t, got, want[d])
				}
			}
		})
	}
	t.Logf("%d records compared", records)
}

// requests asks once without and, for files that are small, once with options.
func requests(path string) []request {
	out := []request{{Path: path, Details: []string{"launch", "kernel"}}}
	if info, err := os.Stat(path); err == nil && info.Size() < 100_000 {
		out = append(out, request{
			Path: path, Details: []string{"launch"}, Attachment: "kineto:x:0123456789ab",
			UUIDs: map[int64]string{1: "GPU-one"},
			ByPID: map[int64]map[int64]string{10: {0: "GPU-ten"}, 20: {0: "GPU-twenty"}, 0: {0: "GPU-zero"}},
		})
	}
	return out
}
