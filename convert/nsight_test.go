package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/schema"
	"tracelake/schema/columnar"
)

const report = "../testdata/demo/training-nsight/report.sqlite"

// changed copies the demo report and runs statements in the copy.
func changed(t *testing.T, name string, sql ...string) string {
	t.Helper()
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range append(sql, "VACUUM") {
		if err := sqlitex.ExecuteTransient(conn, s, nil); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestNsightFormats checks that every encoding of one report gives the same
// files, for any number of workers, and that they are twins.
func TestNsightFormats(t *testing.T) {
	dir := filepath.Join(sharedTraces(t), "nsys/synthetic")
	lake := func(workers int, input string) map[string]string {
		o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", RowGroup: 50, Workers: workers}
		reports, _ := mustRun(t, o, filepath.Join(dir, input))
		if r := reports[input]; r.Outcome != "ok" {
			t.Fatalf("%s: %+v", input, r)
		}
		return parts(t, o.Output, "traces")
	}
	want := lake(1, "e2026.sqlite")
	for i, input := range []string{"e2026.sqlite", "e2026_pqtdir", "e2026_arwdir", "e2026.arrows"} {
		same(t, input, want, lake(i+1, input))
	}
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	mustRun(t, o, filepath.Join(dir, "e2026.sqlite"))
	if _, sum := mustRun(t, o, filepath.Join(dir, "e2026_pqtdir"), filepath.Join(dir, "e2026.arrows")); sum.Duplicates != 2 {
		t.Errorf("%+v", sum)
	}
	if _, sum := mustRun(t, o, filepath.Join(dir, "e2026_pqtdir")); sum.Skipped != 1 {
		t.Errorf("again: %+v", sum)
	}
}

// truth is what the generator of a synthetic report knows.
type truth struct {
	Procs []struct {
		PID, Device     int64
		UUID            string
		GPUEvents       int64 `json:"gpu_events"`
		InIteration     int64 `json:"in_iteration"`
		BusyNS          int64 `json:"busy_ns"`
		FirstNS, LastNS int64 `json:"-"`
		First           int64 `json:"first_ns"`
		Last            int64 `json:"last_ns"`
		Iterations      []struct{ Name string }
	}
	Kernels, Memcpy, Memset, Runtime int64
	GraphTrace                       int64 `json:"graph_trace"`
	BaseNS                           int64 `json:"base_ns"`
	Offset                           int64
}

// TestNsightTruth compares the synthetic reports with what their generator
// wrote down, per process.
func TestNsightTruth(t *testing.T) {
	dir := filepath.Join(sharedTraces(t), "nsys/synthetic")
	files, err := filepath.Glob(filepath.Join(dir, "*.truth.json"))
	if err != nil || len(files) < 7 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		var want truth
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(err)
		}
		stem := strings.TrimSuffix(f, ".truth.json")
		for _, suffix := range []string{".sqlite", "_pqtdir", "_arwdir", ".arrows", ".jsonl"} {
			path := stem + suffix
			if _, err := os.Stat(path); err != nil {
				continue
			}
			t.Run(filepath.Base(path), func(t *testing.T) { checkTruth(t, path, &want) })
		}
	}
}

func checkTruth(t *testing.T, path string, want *truth) {
	tr, _, err := Load(context.Background(), path, link.Marks{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[schema.Kind]int64{}
	for _, k := range tr.GPU.Kind {
		kinds[k]++
	}
	if kinds[schema.Kernel] != want.Kernels || kinds[schema.Memcpy] != want.Memcpy || kinds[schema.Memset] != want.Memset ||
		kinds[schema.Graph] != want.GraphTrace || int64(tr.Launches.Len()) != want.Runtime {
		t.Errorf("%v kinds, %d calls; want %+v", kinds, tr.Launches.Len(), want)
	}
	links := link.Resolve(tr, link.Careful)
	in := map[int64]int64{}
	for i := range tr.GPU.Len() {
		ref, ok := links.Ref(i)
		if !ok {
			continue
		}
		pid := tr.ProcessID(tr.GPU.PID[i])
		in[pid]++
		for p, proc := range want.Procs {
			if (proc.PID == pid) != (ref.Producer == fmt.Sprintf("engine-%d", p)) {
				t.Fatalf("event %d of process %d is in %v", i, pid, ref)
			}
		}
	}
	totals := activity.Group(tr, links, activity.Launch).DeviceTotals()
	if len(totals) != len(want.Procs) {
		t.Fatalf("%d devices, want %d", len(totals), len(want.Procs))
	}
	base := want.BaseNS - want.Offset
	if want.Offset > 1e18 { // normalised: times are absolute as they stand
		base = 0
	}
	for _, p := range want.Procs {
		found := false
		for _, d := range totals {
			if tr.ProcessID(d.PID.V) != p.PID {
				continue
			}
			found = true
			got := fmt.Sprint(d.Device.V, d.Events, in[p.PID], d.BusyNS, d.FirstNS.V, d.LastNS.V)
			off := int64(0)
			if base == 0 {
				off = want.Offset
			} else {
				off = want.BaseNS
			}
			if exp := fmt.Sprint(p.Device, p.GPUEvents, p.InIteration, p.BusyNS, p.First+off, p.Last+off); got != exp {
				t.Errorf("process %d: %s, want %s", p.PID, got, exp)
			}
			if e := tr.GPU.At(int(d.FirstEvent)); e.DeviceUUID.OK && e.DeviceUUID.V != p.UUID {
				t.Errorf("process %d: UUID %v, want %s", p.PID, e.DeviceUUID, p.UUID)
			}
		}
		if !found {
			t.Errorf("no device of process %d", p.PID)
		}
	}
}

// TestProcessesNeverMix imports a report of two virtual machines whose
// processes share their process ID, their correlation IDs and their ordinal.
func TestProcessesNeverMix(t *testing.T) {
	const other = 7 << 48 // another virtual machine
	path := changed(t, "twins.sqlite",
		"DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL WHERE globalPid <> ((1<<48)+(40000<<24))",
		"DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME WHERE globalTid <> ((1<<48)+(40000<<24)+40000)",
		"DELETE FROM NVTX_EVENTS WHERE globalTid <> ((1<<48)+(40000<<24)+40000)",
		fmt.Sprintf("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT start, end, eventClass, globalTid + %d, correlationId, nameId, returnValue, callchainId FROM CUPTI_ACTIVITY_KIND_RUNTIME", other),
		fmt.Sprintf("INSERT INTO NVTX_EVENTS SELECT start, end, eventType, rangeId, category, color, replace(text, 'engine-0', 'other'), globalTid + %d, textId, domainId FROM NVTX_EVENTS", other),
		"CREATE TABLE more AS SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
		fmt.Sprintf("UPDATE more SET globalPid = globalPid + %d, end = end + 7", other),
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT * FROM more", "DROP TABLE more")
	tr, _, err := Load(context.Background(), path, link.Marks{})
	if err != nil {
		t.Fatal(err)
	}
	links := link.Resolve(tr, link.Careful)
	byProcess := map[int64]int{}
	for i := range tr.GPU.Len() {
		key := tr.GPU.PID[i]
		byProcess[key]++
		l := links.Launch[i]
		if l < 0 || tr.Launches.PID[l] != key || tr.Launches.Correlation[l] != tr.GPU.Correlation[i] {
			t.Fatalf("event %d of process %x has launch %d", i, key, l)
		}
		ref, ok := links.Ref(i)
		if want := map[bool]string{true: "other", false: "engine-0"}[key>>48 == 8]; !ok || ref.Producer != want {
			t.Fatalf("event %d of process %x is in %v", i, key, ref)
		}
	}
	if len(byProcess) != 2 || links.Counts.AmbiguousLaunch != 0 || links.Counts.Superseded != 0 {
		t.Fatalf("%v %+v", byProcess, links.Counts)
	}
	for _, detail := range []activity.Detail{activity.Launch, activity.Kernel} {
		g := activity.Group(tr, links, detail)
		for i := range g.Len() {
			for _, m := range g.Members(i) {
				if tr.GPU.PID[m] != tr.GPU.PID[g.First[i]] {
					t.Fatalf("record %d holds events of two processes", i)
				}
			}
		}
		if d := g.DeviceTotals(); len(d) != 2 || d[0].Events != d[1].Events || d[0].SummedNS+7*d[0].Events != d[1].SummedNS {
			t.Errorf("devices %+v", d)
		}
	}
	o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r"}
	if reports, _ := mustRun(t, o, path); reports["twins.sqlite"].Linked != int64(tr.GPU.Len()) || reports["twins.sqlite"].Rows["devices"] != 2 {
		t.Errorf("%+v", reports)
	}
	r, _, err := ImportActivities(context.Background(), path, link.Marks{}, activity.Options{RunID: "r", SessionID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for _, rec := range r.All() {
		if rec.PID != schema.Some[int64](40000) {
			t.Fatalf("record of process %v", rec.PID)
		}
	}
}

const secret = "S3CRET-e7b1"

// TestPrivate plants a secret wherever a report holds private texts, and looks
// for it in everything that an import gives.
func TestPrivate(t *testing.T) {
	q := func(s string) string { return "'" + s + secret + "'" }
	path := changed(t, "private.sqlite",
		"INSERT INTO META_DATA_CAPTURE VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', "+q("TOKEN=")+"), ('PROCESS_0:COMMAND', "+q("/home/x/")+"), ("+q("KEY")+", 'x')",
		"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_USER', "+q("")+"), ('EXPORT_HOST', "+q("")+")",
		"INSERT INTO StringIds VALUES (900001, "+q("HOME=/root\nTOKEN=")+"), (-5, "+q("")+"), (900002, "+q("argv ")+")",
		"CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER)", "INSERT INTO ProcessStreams VALUES (1, 900001, 900002)",
		"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT)", "INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', "+q("")+")",
		"CREATE TABLE ANALYSIS_FILE (id INTEGER, filename TEXT, content TEXT)", "INSERT INTO ANALYSIS_FILE VALUES (1, 'x', "+q("")+")",
		"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT)", "INSERT INTO PROCESSES VALUES ((1<<48)+(5<<24), 5, "+q("sshd ")+"), ((1<<48)+(40000<<24), 40000, 'python')",
		"CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER)", "INSERT INTO ThreadNames VALUES (900001, 0, (1<<48)+(5<<24)+5)",
		"CREATE TABLE OTHER_TABLE (a TEXT)", "INSERT INTO OTHER_TABLE VALUES ("+q("")+")")
	find := func(what string, b []byte) {
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("the secret is in %s", what)
		}
	}
	for _, format := range []columnar.Format{columnar.Parquet, columnar.Arrow} {
		o := Options{Output: filepath.Join(t.TempDir(), "lake"), Run: "r", Format: format, Compression: columnar.None}
		reports, sum := mustRun(t, o, path)
		text, err := json.Marshal([]any{reports, sum})
		if err != nil {
			t.Fatal(err)
		}
		find("the reports", text)
		if reports["private.sqlite"].Outcome != "ok" || reports["private.sqlite"].Rows["metadata"] != 1 {
			t.Fatalf("%s", text)
		}
		err = filepath.WalkDir(o.Output, func(p string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(p)
			find(p, b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	x, err := Inspect(context.Background(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	find("the inspection", text)
	for _, compat := range []bool{false, true} {
		r, d, err := ImportActivities(context.Background(), path, link.Marks{}, activity.Options{RunID: "r", SessionID: "s", Compat: compat})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteJSONLines(&b); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(&b, r.Summary, d.List())
		find("the activities", b.Bytes())
	}
	// Errors: every page of the report damaged in turn.
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.sqlite")
	for at := 0; at < len(whole); at += 4096 {
		b := append([]byte(nil), whole...)
		from := at + 8
		if at == 0 {
			from = 100
		}
		clear(b[from : from+60])
		if err := os.WriteFile(bad, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, compat := range []bool{false, true} {
			_, _, err := ImportActivities(context.Background(), bad, link.Marks{}, activity.Options{RunID: "r", SessionID: "s", Compat: compat})
			if err != nil {
				find(fmt.Sprintf("the error of page %d", at/4096+1), []byte(err.Error()))
			}
		}
	}
}

// TestReportFile checks what is said of a .nsys-rep without nsys, and that nsys
// is asked where it is there.
func TestReportFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "run.nsys-rep")
	if err := os.WriteFile(path, []byte("opaque"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	x, err := Inspect(context.Background(), path, Options{})
	if err != nil || x.Outcome != "rejected" || !strings.Contains(x.Reason, "nsys export --type sqlite -o REPORT.sqlite run.nsys-rep") {
		t.Fatalf("%+v, %v", x, err)
	}
	// The real program cannot be here: this one takes its place and its arguments.
	from, err := filepath.Abs(report)
	if err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n[ \"$1 $2 $3 $4 $5 $6\" = \"export --type sqlite --lazy true --output\" ] && [ \"$8\" = \"" + path + "\" ] && /bin/cp '" + from + "' \"$7\"\n"
	if err := os.WriteFile(filepath.Join(dir, "nsys"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	x, err = Inspect(context.Background(), path, Options{})
	if err != nil || x.Outcome != "ok" || x.GPUEvents != 240 {
		t.Fatalf("%+v, %v", x, err)
	}
	script = "#!/bin/sh\necho " + secret + " >&2\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "nsys"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	x, err = Inspect(context.Background(), path, Options{})
	if err != nil || x.Outcome != "rejected" || !strings.Contains(x.Reason, "exit status 3") || strings.Contains(x.Reason, secret) {
		t.Fatalf("%+v, %v", x, err)
	}
}

// TestMixedDirectory converts traces of all kinds in one run.
func TestMixedDirectory(t *testing.T) {
	o := Options{Output: filepath.Join(t.TempDir(), "lake")}
	reports, sum := mustRun(t, o, demo)
	if r := reports["report.sqlite"]; r.Outcome != "ok" || r.GPUEvents != 240 || r.Linked != 240 || r.InIter != 240 || r.Iterations != 12 {
		t.Errorf("%+v", r)
	}
	if sum.OK != 7 || sum.Ignored != 1 {
		t.Errorf("%+v", sum)
	}
}

// realReports pins what becomes of the real reports of the shared folder:
// outcome, GPU events, those with a launch (which SQL over the export gives,
// too), calls, ranges, and what was noticed.
var realReports = map[string]string{
	"nsys-ai_h100_2gpu_1s.sqlite":    "ok 4368 2092 5796",
	"nsys-ai_healthy_1pct.sqlite":    "ok 400 400 400",
	"nsys-ai_mfu_2gpu_before.sqlite": "ok 5299 5268 7466",
}

func TestRealReports(t *testing.T) {
	dir := filepath.Join(sharedTraces(t), "nsys")
	for name, want := range realReports {
		x, err := Inspect(context.Background(), filepath.Join(dir, name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprintf("%s %d %d %d", x.Outcome, x.GPUEvents, x.Linked, x.Rows["launches"])
		if got != want {
			t.Errorf("%s: %s, want %s (%v)", name, got, want, x.Diags)
		}
	}
}

// named is the difference that all cases of Nsight Systems have without the
// compatibility mode: kernels have their demangled names, copies a name at all,
// and calls no version suffix.
const named = "metadata.first_name metadata.launch_api"

// nsightImprovements are the cases that differ in more, and why.
var nsightImprovements = map[string]string{
	// One odd value never refuses a whole report: it is flagged or counted.
	"nsys_end_null":                 "accepted",
	"nsys_missing_column":           "accepted",
	"nsys_null_start":               "accepted",
	"nsys_text_start":               "accepted",
	"nsys_nvtx_string_null":         "accepted",
	"nsys_device_uuid_conflict":     "accepted", // the device has no name, with a notice
	"nsys_negative_duration_single": "accepted",
	"nsys_negative_duration_hidden": "metadata.excluded_events metadata.first_name metadata.launch_api metadata.summed_duration_ns",
	// A report without CUDA work, or with a table that only an export has, is read.
	"nsys_no_cuda":    "accepted",
	"nsys_no_markers": "accepted",
	// Graphs traced as a whole are GPU work.
	"nsys_graph_rows": "records 5 and 6",
	// A host without a name has none.
	"nsys_host_null": "context.clock_domain context.host metadata.first_name metadata.launch_api",
	// Processes are told apart by the whole global ID, not by its lower half.
	"nsys_negative_gid": "attribution_status iteration_ref metadata.first_name metadata.launch_api metadata.unresolved_reason",
	"nsys_no_runtime":   "metadata.first_name", // no calls
}

func TestNsightDifferencesAreImprovements(t *testing.T) {
	files, err := filepath.Glob("../testdata/stormlog/nsys_*.sqlite")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".sqlite")
		want, rerr := nsightRecords(t, f, true)
		got, err := nsightRecords(t, f, false)
		diff, pinned := "", nsightImprovements[name]
		switch {
		case rerr != nil && err != nil:
		case rerr != nil:
			diff = "accepted"
		case err != nil:
			diff = "refused: " + err.Error()
		default:
			diff = difference(want, got)
			if _, ok := nsightImprovements[name]; !ok && len(want) > 0 {
				pinned = named
			}
		}
		if diff != pinned {
			t.Errorf("%q: %q, // pinned %q", name, diff, pinned)
		}
	}
}

func nsightRecords(t *testing.T, path string, compat bool) ([]map[string]any, error) {
	t.Helper()
	r, _, err := ImportActivities(context.Background(), path, link.Marks{}, activity.Options{RunID: "run-1", SessionID: "session-1", Compat: compat})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := r.WriteJSONLines(&b); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	var out []map[string]any
	for d.More() {
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out, nil
}

// TestDirectoryOfReports passes over databases of others and over reports whose
// export stands beside them.
func TestDirectoryOfReports(t *testing.T) {
	from := changed(t, "run.sqlite")
	dir := filepath.Dir(from)
	db, err := sqlite.OpenConn(filepath.Join(dir, "tracking.db"), sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		t.Fatal(err)
	}
	if err := sqlitex.ExecuteTransient(db, "CREATE TABLE runs (a)", nil); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"run.nsys-rep", "other.nsys-rep"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("opaque"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	found, err := Discover([]string{dir})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, in := range found.Inputs {
		names = append(names, filepath.Base(in.Path))
	}
	if strings.Join(names, " ") != "other.nsys-rep run.sqlite" || found.Ignored != 2 {
		t.Errorf("%v, %d ignored", names, found.Ignored)
	}
}
