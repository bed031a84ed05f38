package modelcache

import (
	"archive/zip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"tracelake/internal/regular"
)

// indexes name the weights of a model, in the order in which loaders look.
var indexes = []struct{ index, single string }{
	{"model.safetensors.index.json", "model.safetensors"},
	{"pytorch_model.bin.index.json", "pytorch_model.bin"},
}

// chosen returns the index or the single file that a loader takes, given what is
// there, or neither.
func chosen(is func(string) bool, shardsFirst bool) (index, single string) {
	for _, x := range indexes {
		one := is(x.single)
		if one && !shardsFirst {
			return "", x.single
		}
		if is(x.index) {
			return x.index, ""
		}
		if one {
			return "", x.single
		}
	}
	return "", ""
}

// weights checks the files that a loader would take.
func (s *Snapshot) weights(r *report, shardsFirst bool) {
	index, single := chosen(func(name string) bool { return s.exists(name) || s.lists(name) }, shardsFirst)
	switch {
	case index != "":
		s.sharded(r, index)
		return
	case single != "":
		s.file(r, single, nil)
		return
	}
	for _, suffix := range []string{".safetensors", ".bin"} {
		if found := s.bySuffix(suffix); len(found) > 0 {
			for _, name := range found {
				s.file(r, name, nil)
			}
			return
		}
	}
	r.add(NoWeights, "", "there are no weights (*.safetensors, *.bin)")
}

func (s *Snapshot) lists(name string) bool {
	_, ok := s.tree[name]
	return ok
}

// bySuffix lists weights that are there or should be, without what only other
// programs read.
func (s *Snapshot) bySuffix(suffix string) []string {
	var out []string
	entries, _ := os.ReadDir(s.Path)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	for name := range s.tree {
		out = append(out, name)
	}
	out = slices.DeleteFunc(out, func(n string) bool {
		return !strings.HasSuffix(n, suffix) || strings.ContainsRune(n, '/') || n == "training_args.bin" || n == "optimizer.bin"
	})
	sort.Strings(out)
	return slices.Compact(out)
}

// shards reads which file holds each tensor.
func (s *Snapshot) shards(index string) (map[string][]string, error) {
	var x struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := readJSON(filepath.Join(s.Path, index), &x); err != nil {
		return nil, err
	}
	if len(x.Map) == 0 {
		return nil, fmt.Errorf("no weight_map in it")
	}
	out := map[string][]string{}
	for tensor, file := range x.Map {
		if !filepath.IsLocal(file) {
			return nil, fmt.Errorf("names the shard %q outside of the model", file)
		}
		out[file] = append(out[file], tensor)
	}
	return out, nil
}

func (s *Snapshot) sharded(r *report, index string) {
	shards, err := s.shards(index)
	if isMissing(err) {
		r.add(Missing, index, "not there")
		return
	} else if err != nil {
		r.add(Index, index, err.Error())
		return
	}
	names := make([]string, 0, len(shards))
	for name := range shards {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		s.file(r, name, shards[name])
	}
}

// file checks one file of weights, and that it holds the tensors of the index.
func (s *Snapshot) file(r *report, name string, tensors []string) {
	path := filepath.Join(s.Path, name)
	st, err := os.Stat(path)
	if err != nil {
		if isMissing(err) {
			if _, err := os.Lstat(path); err != nil { // a dangling link is reported as such
				r.add(Missing, name, "a file of weights that is not there")
			}
			return
		}
		r.add(Unreadable, name, err.Error())
		return
	}
	if !st.Mode().IsRegular() {
		r.add(Unreadable, name, "not a regular file")
		return
	}
	f, err := regular.Open(path)
	if err != nil {
		r.add(Unreadable, name, err.Error())
		return
	}
	defer f.Close()
	head := make([]byte, 64)
	n, _ := io.ReadFull(f, head)
	if isPointer(head[:n]) {
		r.add(Pointer, name, pointerText)
		return
	}
	if strings.HasSuffix(name, ".safetensors") {
		if code, err := checkSafetensors(f, st.Size(), tensors); err != nil {
			r.add(code, name, err.Error())
		}
		return
	}
	if err := checkPickle(f, st.Size(), head[:n]); err != nil {
		r.add(Header, name, err.Error())
	}
}

// checkPickle looks whether a PyTorch file is whole: a ZIP archive has its
// directory at the end. The format before PyTorch 1.6 has no such mark and is
// told by its first byte only.
func checkPickle(f *os.File, size int64, head []byte) error {
	switch {
	case size == 0:
		return fmt.Errorf("empty")
	case len(head) >= 4 && string(head[:4]) == "PK\x03\x04":
		if _, err := zip.NewReader(f, size); err != nil {
			return fmt.Errorf("truncated or broken archive: %w", err)
		}
		return nil
	case head[0] == 0x80:
		return nil
	}
	return fmt.Errorf("not a PyTorch file")
}

// Weights names the files of weights that a loader would take, once the small
// files and the listing are there. It returns nil when that is not known.
func (s *Snapshot) Weights(shardsFirst bool) []string {
	if s.tree == nil {
		return nil
	}
	index, single := chosen(s.lists, shardsFirst)
	if index != "" {
		shards, err := s.shards(index)
		if err != nil {
			return nil
		}
		out := []string{index}
		for name := range shards {
			out = append(out, name)
		}
		sort.Strings(out)
		return out
	}
	if single != "" {
		return []string{single}
	}
	if found := s.bySuffix(".safetensors"); len(found) > 0 {
		return found
	}
	return s.bySuffix(".bin")
}
