package modelcache

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzSnapshot checks models in the cache whose files hold arbitrary text: the
// problems are the same each time, and nothing outside of the snapshot counts.
func FuzzSnapshot(f *testing.F) {
	f.Add([]byte(`{"model_type":"x","architectures":["A"]}`), []byte(`{"weight_map":{"a":"model-1.safetensors","b":"../../x"}}`), []byte(`{"format_version":1,"files":{"config.json":{"size":3}}}`), "main")
	f.Add([]byte(`{"auto_map":{"AutoConfig":"../x.py"}}`), []byte(`{"weight_map":7}`), []byte(`{"format_version":1,"files":{"/etc/passwd":{"lfs_size":-1}}}`), "../main")
	f.Add([]byte("version https://git-lfs.github.com/spec/v1\n"), []byte("null"), []byte("[]"), strings.Repeat("a", 40))
	f.Fuzz(func(t *testing.T, config, index, tree []byte, revision string) {
		cache := t.TempDir()
		repo := RepoDir(cache, "org/name")
		if rel, err := filepath.Rel(cache, repo); err != nil || !filepath.IsLocal(rel) {
			t.Fatal(repo)
		}
		for name, text := range map[string][]byte{
			"refs/main": []byte(sha), "trees/" + sha + ".json": tree, "snapshots/" + sha + "/config.json": config,
			"snapshots/" + sha + "/model.safetensors.index.json": index,
		} {
			path := filepath.Join(repo, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := Find(cache, "org/name", revision); err == nil && s.Revision != sha {
			t.Fatalf("revision %q is %q", revision, s.Revision)
		}
		s, err := Find(cache, "org/name", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range s.Weights(false) {
			if !filepath.IsLocal(w) {
				t.Fatalf("weights outside of the model: %q", w)
			}
		}
		first := fmt.Sprint(s.Check(Need{Weights: true, Tokenizer: true}))
		if again := fmt.Sprint(s.Check(Need{Weights: true, Tokenizer: true})); again != first {
			t.Fatalf("%s, then %s", first, again)
		}
		_, _ = s.Config()
		local, err := Local(s.Path)
		if err != nil {
			t.Fatal(err)
		}
		_ = local.Check(Need{Weights: true, Tokenizer: true})
		if a, err := Fingerprint(s.Path); err == nil {
			if b, _ := Fingerprint(s.Path); a != b {
				t.Fatalf("%s, then %s", a, b)
			}
		}
	})
}
