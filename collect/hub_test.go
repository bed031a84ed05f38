package collect

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tracelake/collect/modelcache"
	"tracelake/collect/worker"
)

// fakeHub serves models on the loopback as the hub does, to the real client.
type fakeHub struct {
	*httptest.Server
	mu     sync.Mutex
	models map[string]map[string][]byte
	faults map[string]string // by model
	gets   map[string]int    // bodies asked for, by model and file
	ranges []string
}

const hubCommit = "89abcdef0123456789abcdef0123456789abcdef"

func newFakeHub(t *testing.T) *fakeHub {
	h := &fakeHub{models: map[string]map[string][]byte{}, faults: map[string]string{}, gets: map[string]int{}}
	api, files := http.NewServeMux(), http.NewServeMux()
	api.HandleFunc("GET /api/models/{org}/{name}", h.info)
	api.HandleFunc("GET /api/models/{org}/{name}/revision/{rev}", h.info)
	api.HandleFunc("GET /api/models/{org}/{name}/tree/{rev}", h.tree)
	files.HandleFunc("GET /{org}/{name}/resolve/{rev}/{file...}", h.file) // and HEAD
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			api.ServeHTTP(w, r)
			return
		}
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// add makes a model of one large file of weights.
func (h *fakeHub) add(id, fault string) {
	h.models[id] = map[string][]byte{
		"config.json":    []byte(`{"architectures":["LlamaForCausalLM"],"model_type":"llama"}`),
		"tokenizer.json": []byte("{}"),
		"README.md":      []byte("not needed"),
		"model.gguf":     []byte("of another program"),
		"original/x.pth": []byte("of another program"),
	}
	n := 1 << 20
	if fault == "cut" {
		n = 24 << 20 // the client keeps pieces of 10 MiB
	}
	header := fmt.Sprintf(`{"a":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}`, n, n)
	data := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
	h.models[id]["model.safetensors"] = append(data, make([]byte, n)...)
	h.faults[id] = fault
}

func (h *fakeHub) fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("X-Error-Code", code)
	w.Header().Set("X-Error-Message", code)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":%q}`, code)
}

func (h *fakeHub) find(w http.ResponseWriter, r *http.Request) (id string, files map[string][]byte, fault string) {
	id = r.PathValue("org") + "/" + r.PathValue("name")
	h.mu.Lock()
	defer h.mu.Unlock()
	files, fault = h.models[id], h.faults[id]
	switch {
	case files == nil || fault == "missing":
		h.fail(w, 401, "RepoNotFound") // as for anyone who is not logged in
		return id, nil, ""
	case fault == "gone":
		h.fail(w, 404, "RepoNotFound")
		return id, nil, ""
	case fault == "down":
		h.fail(w, 503, "")
		return id, nil, ""
	}
	if rev := r.PathValue("rev"); rev != "" && rev != "main" && rev != hubCommit {
		h.fail(w, 404, "RevisionNotFound")
		return id, nil, ""
	}
	return id, files, fault
}

func (h *fakeHub) info(w http.ResponseWriter, r *http.Request) {
	if id, files, _ := h.find(w, r); files != nil {
		siblings := []map[string]string{}
		for f := range files {
			siblings = append(siblings, map[string]string{"rfilename": f})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"id": id, "modelId": id, "sha": hubCommit, "private": false, "gated": false, "disabled": false, "downloads": 0, "likes": 0,
			"tags": []string{}, "siblings": siblings,
		})
	}
}

func isLFS(name string) bool {
	return strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".gguf") || strings.HasSuffix(name, ".pth")
}

func etag(name string, data []byte) string {
	if isLFS(name) {
		s := sha256.Sum256(data)
		return hex.EncodeToString(s[:])
	}
	s := sha1.Sum(append(fmt.Appendf(nil, "blob %d\x00", len(data)), data...))
	return hex.EncodeToString(s[:])
}

func (h *fakeHub) tree(w http.ResponseWriter, r *http.Request) {
	_, files, _ := h.find(w, r)
	if files == nil {
		return
	}
	list := []map[string]any{}
	for name, data := range files {
		f := map[string]any{"type": "file", "path": name, "size": len(data), "oid": etag(name, data)}
		if isLFS(name) {
			f["lfs"] = map[string]any{"oid": etag(name, data), "size": len(data), "pointerSize": 130}
		}
		list = append(list, f)
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (h *fakeHub) file(w http.ResponseWriter, r *http.Request) {
	id, files, fault := h.find(w, r)
	if files == nil {
		return
	}
	name := r.PathValue("file")
	data, ok := files[name]
	switch {
	case fault == "gated":
		h.fail(w, 401, "GatedRepo")
		return
	case !ok:
		h.fail(w, 404, "EntryNotFound")
		return
	}
	tag := `"` + etag(name, data) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("X-Repo-Commit", hubCommit)
	w.Header().Set("Accept-Ranges", "bytes")
	if isLFS(name) {
		w.Header().Set("X-Linked-Etag", tag)
		w.Header().Set("X-Linked-Size", strconv.Itoa(len(data)))
	}
	if r.Method == http.MethodHead {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		return
	}
	h.mu.Lock()
	h.gets[id+"/"+name]++
	first := h.gets[id+"/"+name] == 1
	h.mu.Unlock()
	if rg := r.Header.Get("Range"); rg != "" {
		var from int
		if n, _ := fmt.Sscanf(rg, "bytes=%d-", &from); n == 1 && from > 0 && from < len(data) {
			h.mu.Lock()
			h.ranges = append(h.ranges, rg)
			h.mu.Unlock()
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
			w.Header().Set("Content-Length", strconv.Itoa(len(data)-from))
			w.WriteHeader(http.StatusPartialContent)
			data = data[from:]
			if fault != "stalled" {
				_, _ = w.Write(data)
				return
			}
		}
	}
	large := name == "model.safetensors"
	switch {
	case large && fault == "cut" && first:
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)*2/3])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	case large && fault == "stalled":
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, _ = w.Write(data[:len(data)/2])
		w.(http.Flusher).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
	case large && fault == "short":
		_, _ = w.Write(data[:len(data)-100])
	case large && fault == "slow":
		for part := range slices.Chunk(data, len(data)/8) {
			_, _ = w.Write(part)
			w.(http.Flusher).Flush()
			time.Sleep(150 * time.Millisecond)
		}
	default:
		_, _ = w.Write(data)
	}
}

func (h *fakeHub) count(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gets[name]
}

func (h *fakeHub) set(id, fault string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults[id] = fault
}

// hubPython is an interpreter with the libraries of models.
func hubPython(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("TRACELAKE_HF_PYTHON"); p != "" {
		return p
	}
	p, _ := filepath.Abs("../.venv-collect/bin/python")
	if !exists(p) {
		t.Skip("SKIPPED: no environment with huggingface_hub; run make test-collect, or set TRACELAKE_HF_PYTHON")
	}
	return p
}

// hubOptions run the scripted tracers behind real downloads.
func hubOptions(t *testing.T, dir string, hub *fakeHub, ids ...string) Options {
	t.Helper()
	o := standin(t, dir)
	o.Python = hubPython(t)
	if out, err := exec.Command(o.Python, "-c", "import huggingface_hub").CombinedOutput(); err != nil {
		t.Skipf("%s has no huggingface_hub: %s", o.Python, out)
	}
	real, err := worker.Unpack(filepath.Join(dir, "worker"))
	if err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(real, worker.Module, "hub.py")) {
		t.Skip("the worker that is built in has no download command")
	}
	o.environ = with(o.environ, "REAL_WORKER="+real, "NO_PROXY=*", "HF_HUB_DOWNLOAD_TIMEOUT=3", "HF_HUB_ETAG_TIMEOUT=3", "HF_HUB_DISABLE_XET=1", "HF_HUB_OFFLINE=0")
	o.environ = slices.DeleteFunc(o.environ, func(s string) bool { return strings.HasPrefix(s, "HF_TOKEN=") || strings.HasPrefix(s, "HF_ENDPOINT=") })
	o.HFEndpoint = hub.URL
	o.Tracers = []string{"good"}
	for _, id := range ids {
		o.Models = append(o.Models, Model{ID: id})
	}
	return o
}

func TestDownloads(t *testing.T) {
	dir, hub := t.TempDir(), newFakeHub(t)
	want := map[string]string{
		"whole": "ok", "cut": "ok", "gated": "gated", "missing": "not_found", "gone": "not_found", "down": "network", "short": "incomplete",
		"stalled": "stall",
	}
	o := hubOptions(t, dir, hub)
	for name := range want {
		hub.add("org/"+name, name)
		o.Models = append(o.Models, Model{ID: "org/" + name})
	}
	o.Models = append(o.Models, Model{ID: "org/whole", Revision: "v9"})
	want["whole@v9"] = "not_found"
	o.DownloadWorkers, o.StallTimeout = 3, 15*time.Second
	o.environ = with(o.environ, "HF_HUB_DOWNLOAD_TIMEOUT=60")
	got, _ := batch(t, o)
	for name, outcome := range want {
		r := got[name+" good"]
		if r.Outcome != outcome {
			t.Errorf("%s: %s (%s), want %s", name, r.Outcome, r.Message, outcome)
		}
		if s := status(t, r.Dir); s.Outcome != outcome || s.Success != (outcome == "ok") {
			t.Errorf("%s: status %s", name, s.Outcome)
		}
	}
	if s := status(t, got["whole good"].Dir); s.Revision != hubCommit || s.KeyParts["revision"] != hubCommit {
		t.Errorf("revision %s", s.Revision)
	}
	if len(hub.ranges) == 0 {
		t.Error("the cut download was not resumed")
	}
	for _, never := range []string{"org/whole/model.gguf", "org/whole/original/x.pth", "org/whole/README.md"} {
		if hub.count(never) > 0 {
			t.Errorf("%s was fetched", never)
		}
	}
	if left := survivors(t, dir); len(left) > 0 {
		t.Errorf("%v survive", left)
	}

	// Nothing sticks: what the hub gives later is traced. What is done is not
	// asked for again.
	before := hub.count("org/whole/model.safetensors")
	for name := range want {
		hub.set("org/"+name, "")
	}
	hub.set("org/whole", "down")
	o.Models = slices.DeleteFunc(o.Models, func(m Model) bool { return m.Revision != "" })
	got, sum := batch(t, o)
	if sum.Classes["ok"] != 6 || sum.Classes[Done] != 2 {
		t.Error(outcomes(got))
	}
	if hub.count("org/whole/model.safetensors") != before {
		t.Error("a model whose results are there was fetched again")
	}
}

func TestOfflineAndMirror(t *testing.T) {
	dir, hub := t.TempDir(), newFakeHub(t)
	hub.add("org/a", "")
	hub.add("org/b", "")
	o := hubOptions(t, dir, hub, "org/a")
	mirror := o.HFEndpoint
	// The mirror may come from the configuration, and the user's own wins.
	o.HFEndpoint = ""
	o.Config = &Config{Env: map[string]map[string]string{"common": {"HF_ENDPOINT": mirror}}}
	if got, _ := batch(t, o); got["a good"].Outcome != "ok" {
		t.Error(got)
	}
	hub.Close()
	o.Models = append(o.Models, Model{ID: "org/b"})
	o.Tracers = []string{"good", "config_only"}
	o.Offline = true
	got, _ := batch(t, o)
	if s := outcomes(got); s != "a config_only ok, a good done, b config_only incomplete, b good incomplete" {
		t.Error(s)
	}
	// Without being told so: what is whole in the cache serves.
	o.Offline, o.Force, o.StallTimeout = false, true, 30*time.Second
	got, _ = batch(t, o)
	if s := outcomes(got); s != "a config_only ok, a good ok, b config_only network, b good network" {
		t.Errorf("%s\n%+v", s, got)
	}
}

// What the client holds for whole, and is not, is fetched again.
func TestBrokenCache(t *testing.T) {
	dir, hub := t.TempDir(), newFakeHub(t)
	hub.add("org/a", "")
	o := hubOptions(t, dir, hub, "org/a")
	batch(t, o)
	cache := filepath.Join(dir, "hf", "hub")
	s, err := modelcache.Find(cache, "org/a", "")
	if err != nil {
		t.Fatal(err)
	}
	blob, err := filepath.EvalSymlinks(filepath.Join(s.Path, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(blob, 1000); err != nil {
		t.Fatal(err)
	}
	o.Force, o.Offline = true, true
	if got, _ := batch(t, o); got["a good"].Outcome != "incomplete" {
		t.Errorf("offline: %+v", got)
	}
	o.Offline = false
	if got, _ := batch(t, o); got["a good"].Outcome != "ok" {
		t.Errorf("%+v", got)
	}
	if n := hub.count("org/a/model.safetensors"); n != 2 {
		t.Errorf("fetched %d times", n)
	}
}

// Two processes that want one model fetch it once.
func TestTwoProcessesFetchOnce(t *testing.T) {
	dir, hub := t.TempDir(), newFakeHub(t)
	hub.add("org/a", "slow")
	o := hubOptions(t, dir, hub, "org/a")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var cmds []*exec.Cmd
	for i := range 2 {
		cmd := exec.Command(self)
		cmd.Env = append(o.environ, fetchEnv+"="+dir, "FETCH_OUT="+fmt.Sprint(i), "FETCH_HUB="+hub.URL, "FETCH_PYTHON="+o.Python)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		cmds = append(cmds, cmd)
	}
	for i, cmd := range cmds {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
		if s := status(t, filepath.Join(dir, fmt.Sprint(i), "org", "a", "eval", "good")); !s.Success {
			t.Errorf("%+v", s)
		}
	}
	if n := hub.count("org/a/model.safetensors"); n != 1 {
		t.Errorf("fetched %d times", n)
	}
}
