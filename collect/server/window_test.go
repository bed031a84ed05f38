package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// fake is an HTTP server on loopback whose profiler routes behave like those of
// vLLM 0.32: a start is effective before its answer goes out, a second start
// and a stop without a start are answered 200, and the traces are written while
// the stop is handled. A vLLM that serves on a GPU is not at hand in tests.
type fake struct {
	*httptest.Server
	dir string

	mu        sync.Mutex
	calls     []string
	profiling bool
	on        map[string]func(w http.ResponseWriter, r *http.Request) // instead of the usual answer
	traces    []string
	later     time.Duration // the traces are complete so long after the answer
}

func newFake(t *testing.T) *fake {
	f := &fake{dir: t.TempDir(), on: map[string]func(http.ResponseWriter, *http.Request){}, traces: []string{"rank0.11.pt.trace.json.gz", "host.async_llm.11.pt.trace.json.gz"}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.calls = append(f.calls, r.Method+" "+r.URL.Path)
	on := f.on[r.URL.Path]
	f.mu.Unlock()
	switch r.URL.Path {
	case "/start_profile":
		f.mu.Lock()
		f.profiling = true
		f.mu.Unlock()
	case "/stop_profile":
		f.mu.Lock()
		was := f.profiling
		f.profiling = false
		f.mu.Unlock()
		if was {
			f.flush()
		}
	}
	if on != nil {
		on(w, r)
	}
}

func (f *fake) flush() {
	for _, name := range f.traces {
		_ = os.WriteFile(filepath.Join(f.dir, name), []byte("{"), 0o600)
	}
	if f.later > 0 {
		go func() {
			time.Sleep(f.later)
			for _, name := range f.traces {
				_ = os.WriteFile(filepath.Join(f.dir, name), []byte(`{"traceEvents": []}`), 0o600)
			}
		}()
	}
}

// count returns how often a route was called.
func (f *fake) count(route string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.calls {
		if c == "POST "+route {
			n++
		}
	}
	return n
}

func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// hangUp ends the connection without an answer.
func hangUp(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		conn.Close()
	}
}

func garbage(w http.ResponseWriter, _ *http.Request) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_, _ = conn.Write([]byte("no HTTP at all\r\n\r\n"))
		conn.Close()
	}
}

func (f *fake) config(t *testing.T) Config {
	t.Helper()
	c, err := NewControl(f.URL, "", 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Control: c, TraceDir: f.dir, Settle: 20 * time.Millisecond, Flush: 5 * time.Second, MissingGrace: 100 * time.Millisecond}
}

func nothing(context.Context, bool) error { return nil }

func TestWindow(t *testing.T) {
	f := newFake(t)
	f.later = 50 * time.Millisecond
	for _, old := range []string{"rank0.1.pt.trace.json.gz", "notes.txt"} {
		if err := os.WriteFile(filepath.Join(f.dir, old), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	profiled := false
	c := f.config(t)
	c.Settle = time.Second // longer than the traces take
	rec, err := Run(context.Background(), c, func(_ context.Context, p bool) error {
		profiled = p
		f.mu.Lock()
		defer f.mu.Unlock()
		if !f.profiling {
			t.Error("the body runs outside the profile")
		}
		return nil
	})
	if err != nil || !profiled || !rec.Started || rec.StartOutcome != Acknowledged || *rec.StartStatus != 200 || *rec.StopStatus != 200 || *rec.StopReason != PhaseEnd {
		t.Errorf("%v %+v", err, rec)
	}
	if got := strings.Join(rec.TraceFiles, " "); got != "rank0.11.pt.trace.json.gz" || !rec.TraceFilesSettled || rec.Note != nil {
		t.Errorf("files %s, %+v", got, rec)
	}
	if st, err := os.Stat(filepath.Join(f.dir, rec.TraceFiles[0])); err != nil || st.Size() < 2 {
		t.Errorf("taken before it was complete: %v %v", st, err)
	}
	if rec.RequestedAtNS > rec.StartRequestedNS || rec.StartRequestedNS > rec.StartReturnedNS || rec.StartReturnedNS > *rec.StoppedAtNS || *rec.StartedAtNS != rec.StartReturnedNS {
		t.Errorf("times: %+v", rec)
	}
	if got := strings.Join(f.calls, ", "); got != "POST /start_profile, POST /stop_profile" {
		t.Errorf("calls: %s", got)
	}
}

// TestStartOutcomes checks what each answer to a start is taken for, and that
// whatever may have started is stopped once, before the body.
func TestStartOutcomes(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  func(http.ResponseWriter, *http.Request)
		outcome string
		status  int
	}{
		{"200", status(200), Acknowledged, 200},
		{"204", status(204), Acknowledged, 204},
		{"401", status(401), Rejected, 401},
		{"403", status(403), Rejected, 403},
		{"404", status(404), Rejected, 404},
		{"405", status(405), Rejected, 405},
		{"407", status(407), Rejected, 407},
		{"400", status(400), Unknown, 400},
		{"408", status(408), Unknown, 408},
		{"422", status(422), Unknown, 422},
		{"429", status(429), Unknown, 429},
		{"499", status(499), Unknown, 499},
		{"500", status(500), Unknown, 500},
		{"501", status(501), Unknown, 501},
		{"503", status(503), Unknown, 503},
		{"redirect", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/elsewhere", http.StatusFound) }, Unknown, 302},
		{"no answer", hangUp, Unknown, 0},
		{"garbage", garbage, Unknown, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFake(t)
			f.on["/start_profile"] = c.answer
			stops := -1
			rec, err := Run(context.Background(), f.config(t), func(_ context.Context, profiled bool) error {
				stops = f.count("/stop_profile")
				if profiled != (c.outcome == Acknowledged) {
					t.Errorf("profiled %v", profiled)
				}
				return nil
			})
			got := 0
			if rec.StartStatus != nil {
				got = *rec.StartStatus
			}
			if err != nil || rec.StartOutcome != c.outcome || got != c.status || (rec.StartError == nil) != (c.outcome == Acknowledged) {
				t.Errorf("%v %+v", err, rec)
			}
			total := f.count("/stop_profile")
			switch c.outcome {
			case Rejected:
				if total != 0 || rec.StopReason != nil || rec.Note == nil {
					t.Errorf("%d stops, %+v", total, rec)
				}
			case Unknown:
				if stops != 1 || total != 1 || *rec.StopReason != StartUnknown || !strings.Contains(*rec.Note, "unprofiled") {
					t.Errorf("%d stops before the body, %d in all, %+v", stops, total, rec)
				}
			case Acknowledged:
				if stops != 0 || total != 1 {
					t.Errorf("%d stops before the body, %d in all", stops, total)
				}
			}
			if f.count("/elsewhere")+f.count("/start_profile") != 1 {
				t.Errorf("calls: %v", f.calls)
			}
		})
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	control, err := NewControl("http://user:secret@"+addr+"/v1", "", time.Second)
	if err != nil {
		t.Fatal(err)
	}
	rec, err := Run(context.Background(), Config{Control: control, TraceDir: t.TempDir(), Settle: time.Millisecond, MissingGrace: time.Millisecond}, nothing)
	if err != nil || rec.StartOutcome != Unknown || rec.StopStatus != nil || rec.Stopped() {
		t.Errorf("%v %+v", err, rec)
	}
	if text := fmt.Sprint(*rec.StartError, *rec.Note, rec.ControlURL); strings.Contains(text, "secret") || strings.Contains(text, "user") || !strings.Contains(*rec.Note, "may still be running") {
		t.Error(text)
	}
}

func TestTimeBound(t *testing.T) {
	f := newFake(t)
	c := f.config(t)
	c.MaxTime = 30 * time.Millisecond
	rec, err := Run(context.Background(), c, func(ctx context.Context, _ bool) error {
		deadline := time.Now().Add(10 * time.Second)
		for f.count("/stop_profile") == 0 && time.Now().Before(deadline) {
			time.Sleep(5 * time.Millisecond)
		}
		if ctx.Err() != nil {
			t.Error("the body was ended, too")
		}
		return nil
	})
	if err != nil || *rec.StopReason != TimeBound || f.count("/stop_profile") != 1 || len(rec.TraceFiles) != 1 {
		t.Errorf("%v, %d stops, %+v", err, f.count("/stop_profile"), rec)
	}
}

func TestBodyFails(t *testing.T) {
	f := newFake(t)
	rec, err := Run(context.Background(), f.config(t), func(context.Context, bool) error { return errors.New("no such benchmark") })
	if err == nil || *rec.BodyError != "no such benchmark" || *rec.StopReason != PhaseEnd || f.count("/stop_profile") != 1 {
		t.Errorf("%v %+v", err, rec)
	}
}

func TestBodyPanics(t *testing.T) {
	f := newFake(t)
	defer func() {
		if recover() == nil || f.count("/stop_profile") != 1 {
			t.Errorf("%d stops", f.count("/stop_profile"))
		}
	}()
	_, _ = Run(context.Background(), f.config(t), func(context.Context, bool) error { panic("x") })
}

// TestCancelled checks that what may have started is stopped when the context
// ends: in the body, while the answer to the start is on its way, and while
// that to the stop is.
func TestCancelled(t *testing.T) {
	t.Run("in the body", func(t *testing.T) {
		f := newFake(t)
		ctx, cancel := context.WithCancel(context.Background())
		rec, err := Run(ctx, f.config(t), func(ctx context.Context, _ bool) error { cancel(); <-ctx.Done(); return ctx.Err() })
		if !errors.Is(err, context.Canceled) || *rec.StopReason != Cancelled || f.count("/stop_profile") != 1 || len(rec.TraceFiles) != 1 {
			t.Errorf("%v %+v", err, rec)
		}
	})
	t.Run("during the start", func(t *testing.T) {
		f := newFake(t)
		ctx, cancel := context.WithCancel(context.Background())
		f.on["/start_profile"] = func(http.ResponseWriter, *http.Request) { cancel(); time.Sleep(50 * time.Millisecond) }
		rec, err := Run(ctx, f.config(t), func(context.Context, bool) error { t.Error("the body ran"); return nil })
		if !errors.Is(err, context.Canceled) || !rec.Started || *rec.StopReason != Cancelled || f.count("/stop_profile") != 1 {
			t.Errorf("%v %+v", err, rec)
		}
	})
	t.Run("during the stop", func(t *testing.T) {
		f := newFake(t)
		ctx, cancel := context.WithCancel(context.Background())
		f.on["/stop_profile"] = func(http.ResponseWriter, *http.Request) { cancel(); time.Sleep(50 * time.Millisecond) }
		rec, err := Run(ctx, f.config(t), nothing)
		if err != nil || *rec.StopReason != PhaseEnd || *rec.StopStatus != 200 || f.count("/stop_profile") != 1 {
			t.Errorf("%v %+v", err, rec)
		}
	})
	t.Run("before the start", func(t *testing.T) {
		f := newFake(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		rec, err := Run(ctx, f.config(t), nothing)
		if !errors.Is(err, context.Canceled) || len(f.calls) != 0 || rec.Started {
			t.Errorf("%v %v", err, f.calls)
		}
	})
}

// TestStopFails checks that a stop is not repeated and that the record says so.
func TestStopFails(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){"500": status(500), "no answer": hangUp} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.on["/stop_profile"] = answer
			var warnings []string
			c := f.config(t)
			c.Warn = func(s string) { warnings = append(warnings, s) }
			rec, err := Run(context.Background(), c, nothing)
			if err != nil || f.count("/stop_profile") != 1 || rec.Stopped() || !strings.Contains(*rec.Note, "may still be running") || len(warnings) != 1 {
				t.Errorf("%v, %d stops, %+v, %v", err, f.count("/stop_profile"), rec, warnings)
			}
		})
	}
}

func TestStoppedByServer(t *testing.T) {
	f := newFake(t)
	rec, err := Run(context.Background(), f.config(t), func(context.Context, bool) error {
		f.flush() // after a number of iterations
		return nil
	})
	if err != nil || *rec.StopReason != StoppedByServer || f.count("/stop_profile") != 1 || len(rec.TraceFiles) != 1 {
		t.Errorf("%v %+v", err, rec)
	}
}

func TestNoTraces(t *testing.T) {
	f := newFake(t)
	f.traces = []string{"host.async_llm.1.pt.trace.json.gz"}
	rec, _ := Run(context.Background(), f.config(t), nothing)
	if len(rec.TraceFiles) != 0 || rec.Note == nil || !strings.Contains(*rec.Note, "no new worker trace") {
		t.Errorf("%+v", rec)
	}
	c := f.config(t)
	c.TraceDir = ""
	if rec, _ = Run(context.Background(), c, nothing); rec.Note == nil || !strings.Contains(*rec.Note, "stays on the server") {
		t.Errorf("no directory: %+v", rec)
	}
	file := filepath.Join(f.dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.TraceDir = file
	if rec, _ = Run(context.Background(), c, nothing); rec.Note == nil || !strings.Contains(*rec.Note, "before the start") || *rec.StopStatus != 200 {
		t.Errorf("unreadable: %+v", rec)
	}
}

// TestGrowing checks that a trace that never stops growing ends the wait, and
// is said to be incomplete.
func TestGrowing(t *testing.T) {
	f := newFake(t)
	c := f.config(t)
	c.Settle, c.Flush = 100*time.Millisecond, 400*time.Millisecond
	done := make(chan struct{})
	defer close(done)
	f.on["/stop_profile"] = func(http.ResponseWriter, *http.Request) {
		go func() {
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
					_ = os.Truncate(filepath.Join(f.dir, "rank0.11.pt.trace.json.gz"), int64(i))
				}
			}
		}()
	}
	rec, _ := Run(context.Background(), c, nothing)
	if len(rec.TraceFiles) != 1 || rec.TraceFilesSettled || rec.Note == nil || !strings.Contains(*rec.Note, "still grew") {
		t.Errorf("%+v", rec)
	}
}

func TestWorkerTraceNames(t *testing.T) {
	for name, want := range map[string]bool{
		"rank0.17.pt.trace.json.gz": true, "rank12.pt.trace.json": true, "dp0_pp0_tp1_dcp0_ep0_rank3.17.pt.trace.json.gz": true,
		"rank0.async_llm.17.pt.trace.json.gz": false, "host_123.17.pt.trace.json.gz": false, "host.a_rank1.pt.trace.json": false,
		"rank0.profiler_out.txt": false, "rank0.json": false,
	} {
		if IsWorkerTrace(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8000": "http://127.0.0.1:8000", "http://h:1/v1": "http://h:1", "https://u:p@h/v1/completions?k=1#f": "https://h",
		"http://[::1]:80/proxy/": "http://[::1]:80/proxy", "ftp://h": "", "h:8000": "", "http://": "", "http://a b/": "",
	} {
		c, err := NewControl(address, "", time.Second)
		if want == "" {
			if err == nil || strings.Contains(err.Error(), "u:p") {
				t.Errorf("%s: %v", address, err)
			}
			continue
		}
		if err != nil || c.URL() != want {
			t.Errorf("%s: %v %v", address, c, err)
		}
	}
	if _, err := NewControl("http://h", "k\n", time.Second); err == nil {
		t.Error("a key with a line feed")
	}
}

func TestAPIKey(t *testing.T) {
	f := newFake(t)
	f.on["/start_profile"] = func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer k\xe9y" {
			w.WriteHeader(401)
		}
	}
	c := f.config(t)
	c.Control.apiKey = "kéy"
	if rec, _ := Run(context.Background(), c, nothing); rec.StartOutcome != Acknowledged {
		t.Errorf("%+v", rec)
	}
}

func TestRequests(t *testing.T) {
	f := newFake(t)
	var mu sync.Mutex
	var bodies []string
	take := func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 200)
		n, _ := r.Body.Read(b)
		mu.Lock()
		bodies = append(bodies, string(b[:n]))
		mu.Unlock()
		if strings.Contains(string(b[:n]), "bad") {
			w.WriteHeader(400)
			fmt.Fprint(w, "no such thing")
		}
	}
	for _, route := range []string{"/v1/completions", "/v1/chat/completions", "/v1/score"} {
		f.on[route] = take
	}
	f.on["/v1/models"] = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"data": [{"id": "org/m"}]}`) }
	c := f.config(t).Control
	if got := c.Model(context.Background()); got != "org/m" {
		t.Errorf("model %q", got)
	}
	path := filepath.Join(t.TempDir(), "r.jsonl")
	text := `{"prompt": "a", "max_tokens": 9007199254740993}` + "\n\n" + `{"messages": [], "model": "other"}` + "\n" + `{"route": "/v1/score", "body": {"x": "bad"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	requests, err := ReadRequests(path, "org/m")
	if err != nil || len(requests) != 3 {
		t.Fatal(requests, err)
	}
	n, err := c.Send(context.Background(), requests, 2)
	if n != 2 || err == nil || !strings.Contains(err.Error(), "1 of 3 requests failed, first line 4: HTTP 400: no such thing") {
		t.Errorf("%d %v", n, err)
	}
	all := strings.Join(bodies, " ")
	for _, want := range []string{`"max_tokens":9007199254740993`, `"model":"org/m"`, `"model":"other"`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	for _, bad := range []string{"", "[]", `{"x": 1}`, `{"body": {}}`, `{"route": "v1", "body": {}}`, `{"route": "/v1", "body": 3}`, "{"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadRequests(path, ""); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestExec(t *testing.T) {
	var log strings.Builder
	if err := Exec(context.Background(), "echo out; echo err >&2", &log); err != nil || log.String() != "out\nerr\n" {
		t.Errorf("%v %q", err, log.String())
	}
	if err := Exec(context.Background(), "exit 3", &log); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("%v", err)
	}
	// What the command leaves ends with it; waiting for its hold on the log would
	// be an error.
	log.Reset()
	if err := Exec(context.Background(), "sleep 100 & echo $!", &log); err != nil {
		t.Errorf("in the background: %v", err)
	}
	left, err := strconv.Atoi(strings.TrimSpace(log.String()))
	if err != nil {
		t.Fatal(err)
	}
	for tries := 0; ; tries++ { // a killed process takes a moment to go
		state, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", left))
		if len(state) == 0 || strings.Contains(string(state), ") Z ") {
			break
		}
		if tries == 500 {
			t.Fatalf("still there: %s", state)
		}
		time.Sleep(10 * time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	// A process of the group that stayed would hold the log open.
	if err := Exec(ctx, "sleep 100 & sleep 100", &log); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
