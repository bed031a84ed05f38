package convert

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
)

const oneEvent = `{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]}`

func put(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNoRegularFile names a pipe and devices beside a trace, and lets a
// directory hold them: none is waited for or read, and the trace is imported.
func TestNoRegularFile(t *testing.T) {
	dir, apart := t.TempDir(), t.TempDir()
	good := put(t, filepath.Join(dir, "good.json"), oneEvent)
	pipe := filepath.Join(apart, "pipe.json")
	for _, p := range []string{pipe, filepath.Join(dir, "pipe.json"), filepath.Join(dir, "pipe.sqlite")} {
		if err := syscall.Mkfifo(p, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"zero.json": "/dev/zero", "self": "self", "up": ".."} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	reports, sum := mustRun(t, Options{Output: filepath.Join(t.TempDir(), "lake")}, pipe, "/dev/zero", dir)
	if r := reports[filepath.Base(good)]; r.Outcome != "ok" {
		t.Errorf("the trace beside them: %+v", r)
	}
	if r := reports["pipe.json"]; !strings.Contains(r.Failed, "standard input") {
		t.Errorf("pipe: %+v", r)
	}
	if r := reports["zero"]; !strings.Contains(r.Failed, "device") {
		t.Errorf("device: %+v", r)
	}
	if sum.Inputs != 3 || sum.Ignored != 5 {
		t.Errorf("summary %+v", sum)
	}
}

// TestOddFileNames imports files whose names hold a newline, SQL and bytes
// that are no UTF-8, and finds each again by its name.
func TestOddFileNames(t *testing.T) {
	dir := t.TempDir()
	names := []string{"new\nline.json", "bad\xff.json", "'); DROP TABLE traces; --.json", "<script>.json", strings.Repeat("n", 250) + ".json"}
	for i, n := range names {
		put(t, filepath.Join(dir, n), strings.Replace(oneEvent, `"a"`, fmt.Sprintf(`"a%d"`, i), 1))
	}
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	reports, _ := mustRun(t, o, dir)
	again, _ := mustRun(t, o, dir)
	for _, n := range names {
		if r := reports[n]; r.Outcome != "ok" || r.Skipped != "" {
			t.Errorf("%q: %+v", n, r)
		}
		if r := again[n]; r.Skipped != AlreadyThere {
			t.Errorf("%q is not found again: %+v", n, r)
		}
	}
}

// TestChangedFile lets a trace grow, shrink and be replaced while it is read:
// nothing of it is committed, the report says why, and the next run takes it.
func TestChangedFile(t *testing.T) {
	event := `{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 2},` + "\n"
	text := `{"traceEvents": [` + strings.Repeat(event, 50_000) + oneEvent[17:]
	for name, change := range map[string]func(path string) error{
		"grows": func(p string) error {
			f, err := os.OpenFile(p, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(" ")
			return err
		},
		"shrinks":  func(p string) error { return os.Truncate(p, 1000) },
		"is empty": func(p string) error { return os.Truncate(p, 0) },
		"is replaced": func(p string) error {
			other := p + ".new"
			if err := os.WriteFile(other, []byte(oneEvent), 0o600); err != nil {
				return err
			}
			return os.Rename(other, p)
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := put(t, filepath.Join(t.TempDir(), "t.json"), text)
			var once atomic.Bool
			o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", Progress: func(string, int64) {
				if once.CompareAndSwap(false, true) {
					if err := change(path); err != nil {
						t.Error(err)
					}
				}
			}}
			reports, sum := mustRun(t, o, path)
			if r := reports["t.json"]; !strings.Contains(r.Failed, "changed while it was read") || !sum.Bad() {
				t.Errorf("%+v", r)
			}
			if p := parts(t, o.Output); len(p) != 0 {
				t.Errorf("committed: %v", p)
			}
			put(t, path, text)
			o.Progress = nil
			reports, _ = mustRun(t, o, path)
			if r := reports["t.json"]; r.Outcome != "ok" {
				t.Errorf("the complete file: %+v", r)
			}
		})
	}
}

// TestBombs imports a megabyte or less that unpacks to half a gigabyte, as a
// header value and as tiny events: the heap stays within the bound of chunks.
func TestBombs(t *testing.T) {
	const size = 512 << 20
	packers := map[string]func(io.Writer) (io.WriteCloser, error){
		"gz":  func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestSpeed) },
		"zst": func(w io.Writer) (io.WriteCloser, error) { return zstd.NewWriter(w) },
	}
	for ext, packer := range packers {
		for kind, unit := range map[string]string{"spaces": strings.Repeat(" ", 1<<16), "events": strings.Repeat("{},", 1<<14)} {
			t.Run(ext+" "+kind, func(t *testing.T) {
				if kind == "events" && testing.Short() {
					t.Skip("slow")
				}
				var b bytes.Buffer
				w, err := packer(&b)
				if err != nil {
					t.Fatal(err)
				}
				total := size
				if kind == "events" {
					total /= 8
				}
				_, _ = io.WriteString(w, `{"traceEvents": [`)
				for n := 0; n < total; n += len(unit) {
					_, _ = io.WriteString(w, unit)
				}
				_, _ = io.WriteString(w, oneEvent[17:])
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				path := put(t, filepath.Join(t.TempDir(), "bomb.json."+ext), b.String())
				peak := heapOf(func() {
					reports, _ := mustRun(t, Options{Output: filepath.Join(t.TempDir(), "lake"), Workers: 2}, path)
					if r := reports[filepath.Base(path)]; r.Outcome == "" {
						t.Errorf("%+v", r)
					}
				})
				if peak > 384<<20 {
					t.Errorf("%d bytes of heap for %d of text", peak, total)
				}
			})
		}
	}
}

// heapOf returns the most heap in use while f runs.
func heapOf(f func()) uint64 {
	ctx, cancel := context.WithCancel(context.Background())
	peak := make(chan uint64)
	go func() {
		var most uint64
		for ctx.Err() == nil {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapInuse)
			time.Sleep(5 * time.Millisecond)
		}
		peak <- most
	}()
	f()
	cancel()
	return <-peak
}

// TestFullDisk lets the dataset run out of space on a file system of a
// megabyte: an error that says so, and nothing that counts as data.
func TestFullDisk(t *testing.T) {
	small := t.TempDir()
	if err := mountSmall(small); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { unmount(small) })
	var b strings.Builder
	b.WriteString(`{"traceEvents": [`)
	for i := range 300_000 {
		fmt.Fprintf(&b, `{"ph": "X", "cat": "cpu_op", "name": "%x", "pid": 1, "tid": 1, "ts": %d, "dur": 2},`, i*2654435761, i*i%1000003)
	}
	b.WriteString(oneEvent[17:])
	path := put(t, filepath.Join(t.TempDir(), "t.json"), b.String())
	found, err := Discover([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Output: filepath.Join(small, "lake"), Run: "r", Writer: "tracelake test"}
	if _, err := Run(t.Context(), found, o, func(Report) {}); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Fatalf("error %v", err)
	}
	if p := parts(t, o.Output); len(p) != 0 {
		t.Errorf("committed: %v", p)
	}
}

func mountSmall(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") }

func unmount(dir string) { _ = syscall.Unmount(dir, syscall.MNT_DETACH) }
