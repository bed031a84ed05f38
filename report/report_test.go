package report_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tracelake/analyze/query"
	"tracelake/convert"
	"tracelake/report"
)

// hostile is a kernel name that tries to leave every place where a page can
// hold it.
const hostile = `<img src=x onerror=alert(1)></script><script>alert(2)</script>'); DROP TABLE report_kernels; --{{.}}`

// open converts traces and opens the dataset.
func open(t *testing.T, inputs ...string) *query.DB {
	t.Helper()
	found, err := convert.Discover(inputs)
	if err != nil {
		t.Fatal(err)
	}
	lake := filepath.Join(t.TempDir(), "lake")
	if _, err := convert.Run(context.Background(), found, convert.Options{Output: lake, Writer: "test"}, func(convert.Report) {}); err != nil {
		t.Fatal(err)
	}
	db, err := query.Open(context.Background(), lake, query.Options{})
	if errors.Is(err, query.ErrNoDuckDB) {
		t.Skip("SKIPPED: this build has no DuckDB")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func write(t *testing.T, db *query.DB, o report.Options) (*report.Report, string) {
	t.Helper()
	r, err := report.Collect(context.Background(), db, o)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	return r, b.String()
}

// trace writes a small trace: kernels on two streams.
func trace(t *testing.T, name string, kernels int) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(`{"traceEvents": [` + "\n")
	for i := range kernels {
		text, err := json.Marshal(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, `{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":1,"ts":%d,"dur":2,"args":{"correlation":%d}},`+"\n", 10*i, i+1)
		fmt.Fprintf(&b, `{"ph":"X","cat":"kernel","name":%s,"pid":0,"tid":7,"ts":%d,"dur":4,"args":{"device":0,"stream":%d,"correlation":%d}},`+"\n", text, 10*i+3, 7+i%2, i+1)
	}
	b.WriteString(`{"ph":"i","name":"end","pid":1,"tid":1,"ts":0,"s":"g"}]}`)
	path := filepath.Join(t.TempDir(), "trace.json")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

var dataElement = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// The page is well formed, has its parts, and fetches nothing.
func TestPage(t *testing.T) {
	db := open(t, "../testdata/demo")
	r, page := write(t, db, report.Options{Title: "A <title> & more", Lake: "lake", Command: "tracelake report lake", Version: "tracelake test"})
	if r.Traces() != 7 || r.Verdict() != "fair" {
		t.Errorf("%d traces, verdict %s; want 7 and fair", r.Traces(), r.Verdict())
	}
	for _, want := range []string{
		"<!doctype html>", "<title>A &lt;title&gt; &amp; more</title>", "tracelake report lake", "trust: fair",
		"BLAKE3 ", "testdata/demo/serving/rank0.pt.trace.json.gz", "default-src &#39;none&#39;", "<noscript>", "Permission is hereby granted",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if m := regexp.MustCompile(`(?i)<(?:script|link|img|iframe)[^>]*(?:src|href)="?(?:https?:|//)[^>]*>`).FindString(page); m != "" {
		t.Errorf("the page loads something: %s", m)
	}
	if n := strings.Count(page, "<script"); n != 3 {
		t.Errorf("%d script elements; want the data, the library and our own", n)
	}
	var data struct {
		Tables map[string]struct {
			Columns [][2]string
			Rows    [][]any
			Total   int
		}
	}
	if err := json.Unmarshal([]byte(dataElement.FindStringSubmatch(page)[1]), &data); err != nil {
		t.Fatal(err)
	}
	for name, table := range data.Tables {
		for _, c := range table.Columns {
			if c[1] == "" {
				t.Errorf("%s.%s has no meaning", name, c[0])
			}
		}
		for _, row := range table.Rows {
			if len(row) != len(table.Columns) {
				t.Fatalf("%s: %d values in %d columns", name, len(row), len(table.Columns))
			}
		}
	}
	if n := len(data.Tables["devices"].Rows); n != 4 {
		t.Errorf("%d devices; want 4", n)
	}
}

// The policy of the page allows exactly the scripts and the style that it has.
func TestPolicy(t *testing.T) {
	_, page := write(t, open(t, trace(t, "k", 1)), report.Options{})
	policy := regexp.MustCompile(`http-equiv="Content-Security-Policy" content="([^"]*)"`).FindStringSubmatch(page)[1]
	policy = strings.NewReplacer("&#39;", "'", "&#43;", "+").Replace(policy)
	for _, part := range regexp.MustCompile(`(?s)<(style|script)>(.*?)</(?:style|script)>`).FindAllStringSubmatch(page, -1) {
		sum := sha256.Sum256([]byte(part[2]))
		hash := "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
		if !strings.Contains(policy, hash) {
			t.Errorf("the policy lacks the hash of a %s: %s", part[1], policy)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("the policy is lax: %s", policy)
	}
}

// A name out of a trace is text wherever it stands.
func TestHostileName(t *testing.T) {
	db := open(t, trace(t, hostile, 3))
	r, page := write(t, db, report.Options{Title: hostile, Lake: hostile, Command: hostile})
	if got := r.Tables["kernels"].Rows[0][0]; got != hostile {
		t.Errorf("kernel %q; want %q", got, hostile)
	}
	if strings.Contains(page, "<img") || strings.Count(page, "</script>") != 3 {
		t.Error("the name is markup somewhere")
	}
}

// Equal datasets give equal bytes, whatever the number of threads.
func TestDeterministic(t *testing.T) {
	lake := filepath.Join(t.TempDir(), "lake")
	found, err := convert.Discover([]string{"../testdata/demo"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := convert.Run(context.Background(), found, convert.Options{Output: lake, Writer: "test"}, func(convert.Report) {}); err != nil {
		t.Fatal(err)
	}
	var first string
	for _, threads := range []int{1, 4, 2} {
		db, err := query.Open(context.Background(), lake, query.Options{Threads: threads})
		if errors.Is(err, query.ErrNoDuckDB) {
			t.Skip("SKIPPED: this build has no DuckDB")
		}
		if err != nil {
			t.Fatal(err)
		}
		_, page := write(t, db, report.Options{Title: "t"})
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = page
		}
		if page != first {
			t.Errorf("with %d threads the page is another one", threads)
		}
	}
}

// Boxes stand for all events of the lanes, each event in one box, and merging
// keeps starts, ends and summed durations.
func TestTimeline(t *testing.T) {
	for _, kernels := range []int{100, 60000} {
		t.Run(fmt.Sprint(kernels), func(t *testing.T) {
			r, page := write(t, open(t, trace(t, "k", kernels)), report.Options{})
			if len(r.Timeline.Devices) != 1 || len(r.Timeline.Devices[0].Lanes) != 2 {
				t.Fatalf("%d devices; want 1 with 2 lanes", len(r.Timeline.Devices))
			}
			d := r.Timeline.Devices[0]
			if (d.CellNS > 0) != (kernels > 48000) {
				t.Errorf("cells of %d ns for %d events", d.CellNS, kernels)
			}
			boxes := 0
			for i, l := range d.Lanes {
				var events, busy int64
				for j := range l.Start {
					events += l.Count[j]
					busy += l.Busy[j]
					if d.CellNS > 0 && l.Dur[j] > d.CellNS+4000 {
						t.Fatalf("a box of %d ns in cells of %d ns", l.Dur[j], d.CellNS)
					}
				}
				boxes += len(l.Start)
				if events != int64(kernels/2) || busy != events*4000 {
					t.Errorf("lane %d: %d events, %d ns; want %d, %d", i, events, busy, kernels/2, kernels/2*4000)
				}
				// event n of the lane starts at 20n µs, or 10 µs later on the other stream
				if want := int64(3000 + 10000*i); l.Start[0] != want {
					t.Errorf("lane %d starts at %d ns; want %d", i, l.Start[0], want)
				}
				last := len(l.Start) - 1
				if end, want := l.Start[last]+l.Dur[last], int64(10000*(kernels-2+i)+7000); end != want {
					t.Errorf("lane %d ends at %d ns; want %d", i, end, want)
				}
			}
			if boxes > 48000+2 || len(page) > 2_000_000 {
				t.Errorf("%d boxes, %d bytes: too much", boxes, len(page))
			}
		})
	}
}

// --top limits tables, says what is left out, and texts are cut.
func TestLimits(t *testing.T) {
	db := open(t, "../testdata/demo")
	r, _ := write(t, db, report.Options{Top: 3})
	k := r.Tables["kernels"]
	if len(k.Rows) != 3 || k.Total != 26 {
		t.Errorf("%d of %d kernels; want 3 of 26", len(k.Rows), k.Total)
	}
	r, _ = write(t, open(t, trace(t, strings.Repeat("ü", 5000), 1)), report.Options{})
	if got := []rune(r.Tables["kernels"].Rows[0][0].(string)); len(got) != 501 || got[500] != '…' {
		t.Errorf("a name of %d characters", len(got))
	}
	for _, n := range []int64{0, -1, 5001} {
		if report.CheckTop(n) == nil {
			t.Errorf("--top %d is allowed", n)
		}
	}
}

// The rows for a device as a whole are told from those of a stream without a
// number.
func TestWaitsWithoutStream(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.json")
	text := `{"traceEvents": [
{"ph":"X","cat":"kernel","name":"a","pid":0,"tid":7,"ts":0,"dur":10,"args":{"device":0}},
{"ph":"X","cat":"kernel","name":"b","pid":0,"tid":7,"ts":30,"dur":10,"args":{"device":0}},
{"ph":"X","cat":"kernel","name":"c","pid":0,"tid":7,"ts":100,"dur":10,"args":{"device":0}}]}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, _ := write(t, open(t, path), report.Options{})
	var sum int64
	for _, row := range r.Tables["waits"].Rows {
		for i, c := range r.Tables["waits"].Columns {
			if c.Name == "idle_ns" {
				sum += row[i].(int64)
			}
		}
	}
	if sum != 80_000 {
		t.Errorf("%d ns of waiting; want 80000", sum)
	}
}

// The vendored library is the one that its checksums name.
func TestLibrary(t *testing.T) {
	sums, err := os.ReadFile("assets/uplot/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(sums)), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d checksums; want 3", len(lines))
	}
	for _, line := range lines {
		want, name, _ := strings.Cut(line, "  ")
		data, err := os.ReadFile(filepath.Join("assets/uplot", name))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
			t.Errorf("%s has the digest %s; want %s", name, got, want)
		}
	}
}
