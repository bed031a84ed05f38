package modelcache

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tokenizers are files of which at least one belongs to every tokenizer.
var tokenizers = []string{
	"tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "vocab.txt", "spiece.model",
	"sentencepiece.bpe.model", "tokenizer.tiktoken", "tekken.json", "source.spm", "vocab.model",
}

// small are files that are needed where the model has them.
var small = append([]string{
	"config.json", "generation_config.json", "merges.txt", "special_tokens_map.json", "added_tokens.json",
	"preprocessor_config.json", "chat_template.jinja", "chat_template.json",
}, tokenizers...)

// Check returns everything that stands in the way of using the model.
func (s *Snapshot) Check(need Need) []Problem {
	r := &report{}
	files := s.links(r)
	s.config(r)
	if need.Tokenizer && !slices.ContainsFunc(tokenizers, s.exists) {
		r.add(NoToken, "", "there is no tokenizer file ("+strings.Join(tokenizers[:3], ", ")+", …)")
	}
	if s.tree != nil {
		for _, name := range small {
			if _, listed := s.tree[name]; listed && !slices.Contains(files, name) {
				r.add(Missing, name, "listed for this commit, and not there")
			}
		}
		for _, name := range files {
			s.listedSize(r, name)
		}
	}
	if need.Weights {
		s.weights(r, need.ShardsFirst)
		if s.tree == nil || len(r.list) > 0 {
			s.partial(r)
		}
	}
	return r.list
}

// links looks at every entry of the directory and returns the names of the
// files that can be read.
func (s *Snapshot) links(r *report) []string {
	entries, err := os.ReadDir(s.Path)
	if err != nil {
		r.add(Unreadable, "", err.Error())
		return nil
	}
	root := ""
	if s.repo != "" {
		if root, err = filepath.EvalSymlinks(s.repo); err != nil {
			r.add(Unreadable, "", err.Error())
			return nil
		}
	}
	var out []string
	for _, e := range entries {
		path := filepath.Join(s.Path, e.Name())
		if e.Type()&os.ModeSymlink != 0 {
			target, err := filepath.EvalSymlinks(path)
			if err != nil {
				text := "a link that leads nowhere"
				if !isMissing(err) {
					text = "a link that cannot be followed"
				}
				r.add(Dangling, e.Name(), text)
				continue
			}
			if root != "" && !strings.HasPrefix(target, root+string(filepath.Separator)) {
				r.add(Escape, e.Name(), "links to a file outside of the model's cache")
				continue
			}
		}
		st, err := os.Stat(path)
		if err != nil {
			r.add(Unreadable, e.Name(), err.Error())
			continue
		}
		if st.Mode().IsRegular() {
			out = append(out, e.Name())
		} else if !st.IsDir() {
			r.add(Unreadable, e.Name(), "not a regular file")
		}
	}
	return out
}

func (s *Snapshot) listedSize(r *report, name string) {
	want, ok := s.tree[name]
	if !ok {
		return
	}
	if st, err := os.Stat(filepath.Join(s.Path, name)); err == nil && st.Size() != want {
		r.add(Size, name, fmt.Sprintf("has %d bytes, the hub lists %d", st.Size(), want))
	}
}

// Config is what is asked of a config.json.
type Config struct {
	Architectures []string `json:"architectures"`
	ModelType     string   `json:"model_type"`
	// AutoMap names code of the repository that the model needs.
	AutoMap map[string]any `json:"auto_map"`
}

// Config reads config.json.
func (s *Snapshot) Config() (*Config, error) {
	c := &Config{}
	if err := readJSON(filepath.Join(s.Path, "config.json"), c); err != nil {
		return nil, err
	}
	return c, nil
}

func (s *Snapshot) config(r *report) {
	path := filepath.Join(s.Path, "config.json")
	text, err := readSmall(path, maxJSON)
	switch {
	case isMissing(err):
		r.add(NoConfig, "config.json", "not there")
	case err != nil:
		r.add(Unreadable, "config.json", err.Error())
	case isPointer(text):
		r.add(Pointer, "config.json", pointerText)
	default:
		if _, err := s.Config(); err != nil {
			r.add(BadConfig, "config.json", "is no JSON object of a model: "+err.Error())
		}
	}
}

const pointerText = "a Git LFS pointer instead of the file; run `git lfs pull` there"

func isPointer(head []byte) bool {
	return bytes.HasPrefix(head, []byte("version https://git-lfs"))
}

// partial reports downloads that were not finished: whatever they were of may
// be missing.
func (s *Snapshot) partial(r *report) {
	dir := filepath.Join(s.repo, "blobs")
	if s.repo == "" {
		dir = filepath.Join(s.Path, ".cache", "huggingface", "download")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".incomplete") {
			r.add(Incomplete, e.Name(), "an unfinished download")
		}
	}
}
