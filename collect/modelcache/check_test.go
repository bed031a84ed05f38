package modelcache

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const sha = "0123456789abcdef0123456789abcdef01234567"

// hub is a cache with one model, laid out as the hub's client does.
type hub struct {
	t     *testing.T
	cache string
	tree  map[string]any
}

func newHub(t *testing.T) *hub {
	h := &hub{t: t, cache: t.TempDir(), tree: map[string]any{}}
	h.write(filepath.Join(h.repo(), "refs", "main"), []byte(sha))
	h.add("config.json", []byte(`{"architectures":["LlamaForCausalLM"],"model_type":"llama"}`))
	h.add("tokenizer.json", []byte(`{}`))
	return h
}

func (h *hub) repo() string            { return RepoDir(h.cache, "org/name") }
func (h *hub) path(name string) string { return filepath.Join(h.repo(), "snapshots", sha, name) }
func (h *hub) blob(name string) string { return filepath.Join(h.repo(), "blobs", "b-"+name) }
func (h *hub) write(path string, data []byte) {
	h.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) link(target, name string) {
	h.t.Helper()
	_ = os.MkdirAll(filepath.Dir(h.path(name)), 0o755)
	_ = os.Remove(h.path(name))
	if err := os.Symlink(target, h.path(name)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *hub) add(name string, data []byte) {
	h.write(h.blob(name), data)
	h.link("../../blobs/b-"+name, name)
	h.tree[name] = map[string]any{"size": len(data), "blob_id": "x"}
}

func (h *hub) listing() {
	text, _ := json.Marshal(map[string]any{"format_version": 1, "files": h.tree})
	h.write(filepath.Join(h.repo(), "trees", sha+".json"), text)
}

func (h *hub) check(need Need) []string {
	h.t.Helper()
	s, err := Find(h.cache, "org/name", "")
	if err != nil {
		h.t.Fatal(err)
	}
	var out []string
	for _, p := range s.Check(need) {
		out = append(out, p.Code+" "+p.File)
	}
	return out
}

// tensors is a safetensors file with one float32 vector per name.
func tensors(names ...string) []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "pt"}}
	for i, n := range names {
		header[n] = map[string]any{"dtype": "F32", "shape": []int{2, 2}, "data_offsets": []int{16 * i, 16 * (i + 1)}}
	}
	text, _ := json.Marshal(header)
	return raw(string(text), 16*len(names))
}

func raw(header string, data int) []byte {
	out := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(out, header...), make([]byte, data)...)
}

func pytorch(t *testing.T) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("archive/data.pkl"); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const index = `{"weight_map":{"a":"model-1.safetensors","b":"model-1.safetensors","c":"model-2.safetensors"}}`

var all = Need{Weights: true, Tokenizer: true}

func TestCheck(t *testing.T) {
	sharded := func(h *hub) {
		h.add("model.safetensors.index.json", []byte(index))
		h.add("model-1.safetensors", tensors("a", "b"))
		h.add("model-2.safetensors", tensors("c"))
	}
	for _, c := range []struct {
		name string
		need Need
		make func(*hub)
		want []string
	}{
		{"single", all, func(h *hub) { h.add("model.safetensors", tensors("a")); h.listing() }, nil},
		{"sharded", all, func(h *hub) { sharded(h); h.listing() }, nil},
		{"no listing", all, sharded, nil},
		{"bin", all, func(h *hub) { h.add("pytorch_model.bin", pytorch(h.t)) }, nil},
		{"old bin", all, func(h *hub) { h.add("pytorch_model.bin", []byte("\x80\x02rest")) }, nil},
		{"other name", all, func(h *hub) { h.add("consolidated.safetensors", tensors("a")) }, nil},
		{"config only", Need{Tokenizer: true}, func(*hub) {}, nil},
		{"no weights", all, func(*hub) {}, []string{"no_weights "}},
		{"no tokenizer", Need{Tokenizer: true}, func(h *hub) { os.Remove(h.path("tokenizer.json")) }, []string{"no_tokenizer "}},
		{"no config", Need{}, func(h *hub) { os.Remove(h.path("config.json")) }, []string{"no_config config.json"}},
		{"config is a list", Need{}, func(h *hub) { h.add("config.json", []byte("[]")) }, []string{"bad_config config.json"}},
		{"config cut", Need{}, func(h *hub) { h.add("config.json", []byte(`{"architectures":[`)) }, []string{"bad_config config.json"}},
		{"config never fetched", Need{Tokenizer: true}, func(h *hub) {
			h.listing()
			os.Remove(h.path("config.json"))
		}, []string{"no_config config.json", "missing_file config.json"}},
		{"listed tokenizer part missing", Need{Tokenizer: true}, func(h *hub) {
			h.add("merges.txt", []byte("x"))
			h.listing()
			os.Remove(h.path("merges.txt"))
		}, []string{"missing_file merges.txt"}},
		{"cut file beside whole shards", all, func(h *hub) { sharded(h); h.add("model.safetensors", tensors("a")[:20]) }, []string{"wrong_size model.safetensors"}},
		{"whole shards beside a cut file", Need{Weights: true, ShardsFirst: true}, func(h *hub) { sharded(h); h.add("model.safetensors", tensors("a")[:20]) }, nil},
		{"whole file beside cut shards", all, func(h *hub) {
			sharded(h)
			h.add("model.safetensors", tensors("a"))
			os.Remove(h.path("model-2.safetensors"))
		}, nil},
		{"cut shards beside a whole file", Need{Weights: true, ShardsFirst: true}, func(h *hub) {
			sharded(h)
			h.add("model.safetensors", tensors("a"))
			os.Remove(h.path("model-2.safetensors"))
		}, []string{"missing_file model-2.safetensors"}},
		{"missing shard", all, func(h *hub) { sharded(h); os.Remove(h.path("model-2.safetensors")) }, []string{"missing_file model-2.safetensors"}},
		{"dangling shard", all, func(h *hub) { sharded(h); os.Remove(h.blob("model-2.safetensors")) }, []string{"dangling_link model-2.safetensors"}},
		{"all shards and index missing", all, func(h *hub) {
			sharded(h)
			h.listing()
			for _, n := range []string{"model-1.safetensors", "model-2.safetensors", "model.safetensors.index.json"} {
				os.Remove(h.path(n))
			}
		}, []string{"missing_file model.safetensors.index.json"}},
		{"truncated shard", all, func(h *hub) {
			sharded(h)
			d := tensors("c")
			h.add("model-2.safetensors", d[:len(d)-1])
		}, []string{"wrong_size model-2.safetensors"}},
		{"longer than listed", all, func(h *hub) {
			h.add("model.safetensors", tensors("a"))
			h.listing()
			h.write(h.blob("model.safetensors"), append(tensors("a"), 0))
		}, []string{"wrong_size model.safetensors", "wrong_size model.safetensors"}},
		{"shard of another model", all, func(h *hub) { sharded(h); h.add("model-2.safetensors", tensors("z")) }, []string{"bad_index model-2.safetensors"}},
		{"index out of the model", all, func(h *hub) {
			h.add("model.safetensors.index.json", []byte(`{"weight_map":{"a":"../../../etc/passwd"}}`))
		}, []string{"bad_index model.safetensors.index.json"}},
		{"index without a map", all, func(h *hub) { h.add("model.safetensors.index.json", []byte(`{}`)) }, []string{"bad_index model.safetensors.index.json"}},
		{"pointer", all, func(h *hub) {
			h.add("model.safetensors", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"))
		}, []string{"lfs_pointer model.safetensors"}},
		{"truncated bin", all, func(h *hub) { h.add("pytorch_model.bin", pytorch(h.t)[:60]) }, []string{"bad_header pytorch_model.bin"}},
		{"text as bin", all, func(h *hub) { h.add("pytorch_model.bin", []byte("<html>")) }, []string{"bad_header pytorch_model.bin"}},
		{"empty bin", all, func(h *hub) { h.add("pytorch_model.bin", nil) }, []string{"bad_header pytorch_model.bin"}},
		{"unfinished download", all, func(h *hub) {
			h.add("model.safetensors", tensors("a"))
			h.write(h.blob("xyz.12345.incomplete"), nil)
		}, []string{"incomplete_download b-xyz.12345.incomplete"}},
		{"unfinished, but whole by the listing", all, func(h *hub) {
			h.add("model.safetensors", tensors("a"))
			h.listing()
			h.write(h.blob("xyz.12345.incomplete"), nil)
		}, nil},
		{"link out of the cache", all, func(h *hub) {
			out := filepath.Join(h.t.TempDir(), "x")
			h.write(out, tensors("a"))
			h.link(out, "model.safetensors")
		}, []string{"link_out_of_cache model.safetensors"}},
		{"link loop", Need{}, func(h *hub) { h.link("b", "a"); h.link("a", "b") }, []string{"dangling_link a", "dangling_link b"}},
		{"fifo", all, func(h *hub) {
			if err := syscall.Mkfifo(h.path("model.safetensors"), 0o644); err != nil {
				h.t.Skip(err)
			}
		}, []string{"unreadable model.safetensors", "unreadable model.safetensors"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHub(t)
			c.make(h)
			if got := h.check(c.need); !slices.Equal(got, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

func TestHostileHeaders(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty":            {},
		"seven bytes":      make([]byte, 7),
		"huge header":      append(binary.LittleEndian.AppendUint64(nil, 1<<63), "{}"...),
		"header past end":  append(binary.LittleEndian.AppendUint64(nil, 50), "{}"...),
		"header over cap":  append(binary.LittleEndian.AppendUint64(nil, maxHeader+1), "{}"...),
		"not json":         raw("xx", 0),
		"not closed":       raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}`, 4),
		"array":            raw(`[]`, 0),
		"backwards":        raw(`{"a":{"dtype":"X","shape":[1],"data_offsets":[4,0]}}`, 4),
		"negative":         raw(`{"a":{"dtype":"X","shape":[1],"data_offsets":[-4,0]}}`, 4),
		"one offset":       raw(`{"a":{"dtype":"X","shape":[1],"data_offsets":[0]}}`, 4),
		"shape overflows":  raw(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,16],"data_offsets":[0,0]}}`, 0),
		"shape disagrees":  raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
		"gap":              raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"overlap":          raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
		"deep":             raw(`{"a":`+strings.Repeat("[", 20000)+strings.Repeat("]", 20000)+`}`, 0),
		"data missing":     raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 3),
		"offset past 2^62": raw(`{"a":{"dtype":"X","shape":[1],"data_offsets":[0,18446744073709551615]}}`, 0),
	} {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := checkSafetensors(f, int64(len(data)), nil); err == nil {
			t.Errorf("%s: taken for good", name)
		}
		f.Close()
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(tensors("a", "b"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "x")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		_, _ = checkSafetensors(file, int64(len(data)), []string{"a"})
	})
}

func TestFind(t *testing.T) {
	h := newHub(t)
	for rev, ok := range map[string]bool{"": true, "main": true, sha: true, "other": false, "../main": false, strings.Repeat("a", 40): false} {
		if s, err := Find(h.cache, "org/name", rev); (err == nil) != ok || ok && s.Revision != sha {
			t.Errorf("%q: %v, %v", rev, s, err)
		}
	}
	h.write(filepath.Join(h.repo(), "refs", "main"), []byte("../../../../etc"))
	if _, err := Find(h.cache, "org/name", ""); err == nil {
		t.Error("a reference that is no commit")
	}
}

func TestWeightsWanted(t *testing.T) {
	h := newHub(t)
	h.add("model.safetensors.index.json", []byte(index))
	h.tree["model-1.safetensors"] = map[string]any{"size": 1}
	h.tree["pytorch_model.bin"] = map[string]any{"size": 1}
	h.listing()
	s, err := Find(h.cache, "org/name", "")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(s.Weights(false)); got != "[model-1.safetensors model-2.safetensors model.safetensors.index.json]" {
		t.Error(got)
	}
}

func TestFingerprint(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", "{}")
	a, err := Fingerprint(dir)
	if err != nil {
		t.Fatal(err)
	}
	write("config.json", "[]")
	b, _ := Fingerprint(dir)
	write("config.json", "{}")
	c, _ := Fingerprint(dir)
	if a == b || a != c {
		t.Error(a, b, c)
	}
}

func TestDir(t *testing.T) {
	for want, env := range map[string]map[string]string{
		"/h/.cache/huggingface/hub": {"HOME": "/h"},
		"/x/huggingface/hub":        {"HOME": "/h", "XDG_CACHE_HOME": "/x"},
		"/h/m/hub":                  {"HOME": "/h", "HF_HOME": "~/m"},
		"/c":                        {"HOME": "/h", "HF_HOME": "~/m", "HF_HUB_CACHE": "/c"},
	} {
		if got := Dir(func(k string) string { return env[k] }); got != want {
			t.Errorf("%v: %s", env, got)
		}
	}
}
