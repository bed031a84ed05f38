package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tracelake/collect/isolate"
	"tracelake/internal/regular"
)

// Artifact is a file that a tracer left.
type Artifact struct {
	Path   string `json:"path"` // below the tracer's directory
	Kind   string `json:"kind"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	// Mtime lets a later run skip computing the digest of a file that nobody
	// touched.
	Mtime string `json:"mtime"`
}

// maxArtifacts bounds the files listed of one job.
const maxArtifacts = 20_000

// artifacts lists every file below dir; declared ones have to be there.
func artifacts(dir string, r *isolate.Result) (list []Artifact, beyond int, err error) {
	kinds := map[string]string{}
	for _, a := range r.Artifacts {
		if !filepath.IsLocal(a.Path) {
			return nil, 0, fmt.Errorf("the tracer names the file %.200q outside of its directory", a.Path)
		}
		kinds[filepath.Clean(a.Path)] = a.Kind
	}
	for _, t := range r.Tables {
		if !filepath.IsLocal(t.Path) {
			return nil, 0, fmt.Errorf("the tracer names the table %.200q outside of its directory", t.Path)
		}
		if _, ok := kinds[filepath.Clean(t.Path)]; !ok {
			kinds[filepath.Clean(t.Path)] = "table"
		}
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		kind, declared := kinds[rel]
		delete(kinds, rel)
		if !declared {
			if rel == LogFile || rel == StatusFile || isOldLog(rel) {
				return nil
			}
			kind = kindOfParent(kinds, rel)
		}
		if len(list) >= maxArtifacts {
			beyond++
			return nil
		}
		a, err := artifact(path, rel, kind)
		if err != nil {
			return err
		}
		list = append(list, a)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	for name := range kinds {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil && st.IsDir() {
			continue // its files are listed
		}
		return nil, 0, fmt.Errorf("the tracer names %s, which it did not write", name)
	}
	return list, beyond, nil
}

// kindOfParent is the kind of the nearest directory that the tracer names.
func kindOfParent(kinds map[string]string, rel string) string {
	for rel != "." {
		rel = filepath.Dir(rel)
		if kind := kinds[rel]; kind != "" {
			return kind
		}
	}
	return "other"
}

func artifact(path, rel, kind string) (Artifact, error) {
	st, err := os.Stat(path)
	if err != nil {
		return Artifact{}, err
	}
	sum, err := fileDigest(path)
	if err != nil {
		return Artifact{}, err
	}
	if kind == "" {
		kind = "other"
	}
	return Artifact{filepath.ToSlash(rel), kind, st.Size(), sum, mtime(st)}, nil
}

func mtime(st fs.FileInfo) string { return st.ModTime().UTC().Format(time.RFC3339Nano) }

func fileDigest(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// verify compares the files of a result with what its status says of them.
func verify(dir string, s *Status) string {
	for _, a := range s.Artifacts {
		if !filepath.IsLocal(a.Path) {
			return fmt.Sprintf("the status file names %.200q", a.Path)
		}
		path := filepath.Join(dir, filepath.FromSlash(a.Path))
		st, err := os.Lstat(path)
		switch {
		case err != nil || !st.Mode().IsRegular():
			return a.Path + " is gone"
		case st.Size() != a.Bytes:
			return fmt.Sprintf("%s has %d bytes instead of %d", a.Path, st.Size(), a.Bytes)
		case mtime(st) == a.Mtime:
			continue
		}
		if sum, err := fileDigest(path); err != nil || sum != a.SHA256 {
			return a.Path + " was changed"
		}
	}
	return ""
}

func isOldLog(name string) bool {
	return strings.HasPrefix(name, "_TRACE_LOG.") && strings.HasSuffix(name, ".txt")
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
