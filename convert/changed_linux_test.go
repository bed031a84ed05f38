package convert

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/internal/faultfs"
)

// filesOf returns the files of a report in order.
func filesOf(path string) (out []string) {
	_ = filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			out = append(out, p)
		}
		return nil
	})
	return out
}

func lastOf(path string) string { all := filesOf(path); return all[len(all)-1] }

// changes are what other programs do to a report.
var changes = map[string]func(path string) error{
	"cut": func(path string) error { return os.Truncate(lastOf(path), 100) },
	"replaced": func(path string) error { // by one of the same size and time
		p := lastOf(path)
		st, err := os.Stat(p)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(p)
		for i := range text {
			text[i] ^= 1
		}
		return errors.Join(err, os.WriteFile(p+".new", text, 0o600), os.Chtimes(p+".new", st.ModTime(), st.ModTime()), os.Rename(p+".new", p))
	},
	"overwritten": func(path string) error { // with what another report holds
		p := filesOf(path)[0]
		text, err := os.ReadFile(p)
		return errors.Join(err, os.WriteFile(p, append(text[:len(text)/2:len(text)/2], text[:len(text)/2]...), 0o600))
	},
	"removed": func(path string) error { return os.Remove(lastOf(path)) },
}

// TestChangedReport lets a trace and reports of Nsight Systems, in each form that
// they have, change at some of the times when they are read or asked about. What
// is imported is the report before or after, and never a mixture; otherwise an
// error says so, as it does where they cannot be read. Nothing is remembered of
// that: the next run takes the report as it is then.
func TestChangedReport(t *testing.T) {
	reports := filepath.Join(sharedTraces(t), "nsys/synthetic")
	m := faultfs.Mount(t)
	for _, input := range []string{"rank0.pt.trace.json.gz", "e2026.sqlite", "e2026_pqtdir", "e2026_arwdir", "e2026.arrows", "e2026.jsonl"} {
		from := reports
		if strings.HasSuffix(input, ".gz") {
			from = "../testdata/demo/serving"
		}
		path, backing := filepath.Join(m.Dir, input), filepath.Join(m.Backing, input)
		fresh := func() {
			if err := errors.Join(os.RemoveAll(backing), copyAll(filepath.Join(from, input), backing)); err != nil {
				t.Fatal(err)
			}
		}
		imported := func() (r Report) {
			found, err := Discover([]string{path})
			if err != nil {
				return Report{Failed: err.Error()}
			}
			o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", Workers: 1, Writer: "tracelake test"}
			if _, err := Run(t.Context(), found, o, func(got Report) { r = got }); err != nil {
				t.Error(err)
			}
			return r
		}
		fresh()
		m.Set(faultfs.Plan{Reads: true})
		before := imported()
		reads, _ := m.Stop()
		for name, change := range changes {
			t.Run(input+" "+name, func(t *testing.T) {
				fresh()
				if err := change(backing); err != nil {
					t.Fatal(err)
				}
				after := imported()
				said := map[string]int{}
				for n := 1; n <= reads; n += max(1, reads/4) {
					fresh()
					m.Set(faultfs.Plan{Reads: true, First: n, Do: func() {
						if err := change(backing); err != nil {
							t.Error(err)
						}
					}})
					got := imported()
					m.Stop()
					said[got.Outcome+strings.TrimPrefix(got.Failed, m.Dir)]++
					if (got.Outcome == "" && got.Failed == "") || got.Outcome != "" && got.Outcome != "rejected" && got.TraceID != before.TraceID && got.TraceID != after.TraceID {
						t.Errorf("changed at %d of %d: %+v", n, reads, got)
					}
				}
				t.Log(said)
			})
		}
		fresh()
		for n := 1; n <= reads; n += max(1, reads/10) {
			m.Set(faultfs.Plan{Reads: true, First: n, Last: n, Errno: syscall.EIO})
			got := imported()
			_, hit := m.Stop()
			if got.Failed == "" && got.TraceID != before.TraceID {
				t.Errorf("%s: EIO at %v: %+v", input, hit, got)
			}
		}
		if got := imported(); got.TraceID != before.TraceID {
			t.Errorf("%s in the end: %+v", input, got)
		}
	}
}

// TestWrittenDatabase has another program write to a database while it is read.
func TestWrittenDatabase(t *testing.T) {
	for _, journal := range []string{"delete", "wal"} {
		t.Run(journal, func(t *testing.T) {
			path := changed(t, "r.sqlite", "PRAGMA journal_mode="+journal)
			var once sync.Once
			wrote := false
			o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", Workers: 1, Progress: func(string, int64) {
				once.Do(func() {
					conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
					if err != nil {
						t.Error(err)
						return
					}
					conn.SetBusyTimeout(10 * time.Millisecond)
					err = sqlitex.ExecuteTransient(conn, "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET start = start + 1, end = end + 1", nil)
					wrote = err == nil
					if !wrote && sqlite.ErrCode(err).ToPrimary() != sqlite.ResultBusy {
						t.Error(err)
					}
					_ = conn.Close()
				})
			}}
			before, _ := mustRun(t, Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}, path)
			reports, sum := mustRun(t, o, path)
			switch r := reports["r.sqlite"]; {
			case wrote && !sum.Bad():
				t.Errorf("written, and yet %+v", r)
			case !wrote && (r.Outcome != "ok" || r.TraceID != before["r.sqlite"].TraceID):
				t.Errorf("kept out, and yet %+v", r)
			}
			o.Progress = nil
			if reports, _ := mustRun(t, o, path); reports["r.sqlite"].Outcome != "ok" {
				t.Errorf("afterwards: %+v", reports)
			}
		})
	}
}

// copyAll copies a file or a directory.
func copyAll(from, to string) error {
	if st, err := os.Stat(from); err != nil || st.IsDir() {
		return errors.Join(err, os.CopyFS(to, os.DirFS(from)))
	}
	text, err := os.ReadFile(from)
	return errors.Join(err, os.WriteFile(to, text, 0o600))
}
