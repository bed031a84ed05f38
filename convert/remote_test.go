package convert

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	_ "tracelake/internal/store/cloud"
	"tracelake/internal/store/storetest"
)

// imported converts inputs into a new dataset and returns it with the reports by
// the last part of their paths.
func imported(t *testing.T, o Options, args ...string) (string, map[string]Report) {
	t.Helper()
	if o.Output == "" {
		o.Output = t.TempDir()
	}
	o.Writer = "test"
	found, err := DiscoverIn(t.Context(), args)
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string]Report{}
	if _, err := Run(t.Context(), found, o, func(r Report) { reports[filepath.Base(r.Path)] = r }); err != nil {
		t.Fatal(err)
	}
	return o.Output, reports
}

func TestInputsOfObjectStore(t *testing.T) {
	s := storetest.Start(t)
	s.Put(t, "demo", "../testdata/demo")
	t.Setenv("TMPDIR", t.TempDir())
	want, _ := imported(t, Options{}, "../testdata/demo")
	got, reports := imported(t, Options{}, s.URL("demo"))
	same(t, "objects and files", parts(t, got, "traces"), parts(t, want, "traces"))
	for name, r := range reports {
		if r.Outcome != "ok" || !strings.HasPrefix(r.Path, "s3://traces/demo/") || strings.Contains(r.Path, "?") {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
		t.Errorf("temporary files stay: %v", left)
	}

	again, reports := imported(t, Options{Output: got}, s.URL("demo/*/*.gz"), s.URL("demo/training-nsight/"))
	for name, r := range reports {
		if r.Skipped != AlreadyThere {
			t.Errorf("%s was imported again", name)
		}
	}
	if len(reports) != 7 || again != got {
		t.Errorf("%d inputs match", len(reports))
	}

	found, err := DiscoverIn(t.Context(), []string{s.URL("demo/serving/rank0.pt.trace.json.gz")})
	if err != nil {
		t.Fatal(err)
	}
	x, err := InspectInput(t.Context(), found.Inputs[0], Options{})
	if err != nil || x.GPUEvents != 464 {
		t.Errorf("inspect: %v, %d GPU events", err, x.GPUEvents)
	}
}

// TestBrokenConnections checks that an input is read to its end over
// connections that break off, and that it fails alone where they never last.
func TestBrokenConnections(t *testing.T) {
	s := storetest.Start(t)
	s.Put(t, "demo/serving", "../testdata/demo/serving")
	want, _ := imported(t, Options{}, "../testdata/demo/serving")

	var cuts atomic.Int64
	s.Break(func(r *http.Request) int64 {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "rank") && r.Header.Get("Range") == "" {
			cuts.Add(1)
			return 20000
		}
		return -1
	})
	got, _ := imported(t, Options{}, s.URL("demo/serving"))
	if cuts.Load() == 0 {
		t.Error("nothing broke off")
	}
	same(t, "objects and files", parts(t, got, "traces"), parts(t, want, "traces"))

	s.Break(func(r *http.Request) int64 {
		if strings.Contains(r.URL.Path, "rank1") && r.Method == http.MethodGet && !strings.HasPrefix(r.Header.Get("Range"), "bytes=0-") {
			return 0
		}
		return -1
	})
	_, reports := imported(t, Options{}, s.URL("demo/serving"))
	if r := reports["rank1.pt.trace.json.gz"]; !strings.Contains(r.Failed, "broke off") || r.Outcome != "" {
		t.Errorf("a connection that never lasts: %+v", r)
	}
	if r := reports["rank0.pt.trace.json.gz"]; r.Outcome != "ok" {
		t.Errorf("the other input: %+v", r)
	}
}

func TestTruncatedObject(t *testing.T) {
	s := storetest.Start(t)
	whole, err := os.ReadFile("../testdata/demo/serving/rank0.pt.trace.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	s.Write(t, "cut/a.json.gz", whole[:len(whole)/2])
	s.Write(t, "cut/b.json.gz", whole)
	s.Write(t, "cut/c.json", nil)
	_, reports := imported(t, Options{}, s.URL("cut"))
	for name, want := range map[string]string{"a.json.gz": "partial", "b.json.gz": "ok", "c.json": "rejected"} {
		if got := reports[name]; got.Outcome != want {
			t.Errorf("%s: %q %s, want %s", name, got.Outcome, got.Failed, want)
		}
	}
}

func TestChangedObject(t *testing.T) {
	s := storetest.Start(t)
	var text bytes.Buffer
	z := gzip.NewWriter(&text)
	_, _ = z.Write([]byte(`{"traceEvents":[{"ph":"X","name":"a","ts":1,"dur":1,"pid":1,"tid":1}]}`))
	_ = z.Close()
	s.Write(t, "a.json.gz", text.Bytes())
	found, err := DiscoverIn(t.Context(), []string{s.URL("a.json.gz")})
	if err != nil {
		t.Fatal(err)
	}
	s.Write(t, "a.json.gz", append(text.Bytes(), 0))
	var failed string
	if _, err := Run(t.Context(), found, Options{Output: t.TempDir(), Writer: "test"}, func(r Report) { failed = r.Failed }); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(failed, "changed while it was read") {
		t.Errorf("read as if nothing had changed: %q", failed)
	}
}

func TestThrottled(t *testing.T) {
	s := storetest.Start(t)
	s.Put(t, "demo/serving", "../testdata/demo/serving")
	var n atomic.Int64
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool { return n.Add(1)%2 == 1 && storetest.SlowDown(w) })
	_, reports := imported(t, Options{}, s.URL("demo/serving"))
	for name, r := range reports {
		if r.Outcome != "ok" {
			t.Errorf("%s: %+v", name, r)
		}
	}

	if testing.Short() {
		return
	}
	s.Fail(func(w http.ResponseWriter, r *http.Request) bool {
		return strings.Contains(r.URL.Path, "rank0") && storetest.SlowDown(w)
	})
	before := s.Requests.Load()
	_, reports = imported(t, Options{}, s.URL("demo/serving"))
	if r := reports["rank0.pt.trace.json.gz"]; !strings.Contains(r.Failed, "fewer requests") {
		t.Errorf("an object that is never served: %+v", r)
	}
	if r := reports["rank1.pt.trace.json.gz"]; r.Outcome != "ok" {
		t.Errorf("the other input: %+v", r)
	}
	if n := s.Requests.Load() - before; n > 60 {
		t.Errorf("%d requests", n)
	}
}

func TestNoAccess(t *testing.T) {
	s := storetest.Start(t)
	for name, c := range map[string]struct{ url, want string }{
		"bucket": {strings.Replace(s.URL("x"), "traces", "elsewhere", 1), "no such bucket"},
		"object": {s.URL("x.json"), "no such object"},
		"params": {s.URL("x.json") + "&regoin=x", "regoin"},
		"secret": {"s3://key:" + storetest.SecretKey + "@traces/x", "credentials come from the environment"},
	} {
		_, err := DiscoverIn(t.Context(), []string{c.url})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), storetest.SecretKey) {
			t.Errorf("%s: the message has the secret: %v", name, err)
		}
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong-"+storetest.SecretKey)
	_, err := DiscoverIn(t.Context(), []string{s.URL("x.json") + "&hostname_immutable=true"}) // another bucket for the cache
	if err == nil || !strings.Contains(err.Error(), "access denied") || !errors.Is(err, os.ErrPermission) || strings.Contains(err.Error(), storetest.SecretKey) {
		t.Errorf("wrong credentials: %v", err)
	}
}

func TestInterruptedRead(t *testing.T) {
	s := storetest.Start(t)
	s.Put(t, "demo/serving", "../testdata/demo/serving")
	found, err := DiscoverIn(t.Context(), []string{s.URL("demo/serving")})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	if _, err := Run(ctx, found, Options{Output: t.TempDir(), Writer: "test"}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interruption: %v", err)
	}
}
