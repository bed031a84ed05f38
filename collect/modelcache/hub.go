package modelcache

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"tracelake/internal/regular"
)

// Dir is where the hub's client keeps models under an environment.
func Dir(getenv func(string) string) string {
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
		if v := getenv(name); v != "" {
			return expand(v, getenv)
		}
	}
	if v := getenv("HF_HOME"); v != "" {
		return filepath.Join(expand(v, getenv), "hub")
	}
	base := getenv("XDG_CACHE_HOME")
	if base == "" {
		base = "~/.cache"
	}
	return filepath.Join(expand(base, getenv), "huggingface", "hub")
}

func expand(path string, getenv func(string) string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		path = getenv("HOME") + path[1:]
	}
	return path
}

// RepoDir is the directory of a model in the cache.
func RepoDir(cache, id string) string {
	return filepath.Join(cache, "models--"+strings.ReplaceAll(id, "/", "--"))
}

// Snapshot is one revision of a model as it lies on disk.
type Snapshot struct {
	Path     string // of the files
	Revision string // commit; empty for a directory outside of the cache

	repo string           // directory in the cache that links must stay in
	tree map[string]int64 // sizes by path, nil where unknown
}

var commit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Find resolves a model and revision ("" is main) to its snapshot.
func Find(cache, id, revision string) (*Snapshot, error) {
	repo := RepoDir(cache, id)
	if revision == "" {
		revision = "main"
	}
	sha := revision
	if !commit.MatchString(revision) {
		if !filepath.IsLocal(revision) {
			return nil, fmt.Errorf("%q is no revision", revision)
		}
		text, err := readSmall(filepath.Join(repo, "refs", revision), maxRef)
		if err != nil {
			return nil, err
		}
		sha = strings.TrimSpace(string(text))
		if !commit.MatchString(sha) {
			return nil, fmt.Errorf("%s: not a commit", filepath.Join(repo, "refs", revision))
		}
	}
	path := filepath.Join(repo, "snapshots", sha)
	if st, err := os.Stat(path); err != nil {
		return nil, err
	} else if !st.IsDir() {
		return nil, fmt.Errorf("%s: not a directory", path)
	}
	s := &Snapshot{Path: path, Revision: sha, repo: repo}
	s.tree = readTree(filepath.Join(repo, "trees", sha+".json"))
	return s, nil
}

// Local takes any directory for a model.
func Local(path string) (*Snapshot, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%s: not a directory", path)
	}
	return &Snapshot{Path: path}, nil
}

// readTree reads the client's listing of all files of a commit; what cannot be
// read is no listing.
func readTree(path string) map[string]int64 {
	var t struct {
		Version int `json:"format_version"`
		Files   map[string]struct {
			Size    *int64 `json:"size"`
			LFSSize *int64 `json:"lfs_size"`
		} `json:"files"`
	}
	if readJSON(path, &t) != nil || t.Version != 1 || t.Files == nil {
		return nil
	}
	out := make(map[string]int64, len(t.Files))
	for name, f := range t.Files {
		switch {
		case f.LFSSize != nil:
			out[name] = *f.LFSSize
		case f.Size != nil:
			out[name] = *f.Size
		default:
			return nil
		}
	}
	return out
}

func readJSON(path string, into any) error {
	text, err := readSmall(path, maxJSON)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// readSmall reads a regular file of at most limit bytes. A FIFO or a device
// would block or never end.
func readSmall(path string, limit int64) ([]byte, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(text)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return text, nil
}

func (s *Snapshot) exists(name string) bool {
	_, err := os.Stat(filepath.Join(s.Path, name))
	return err == nil
}

// missing says whether the listing or the directory knows a file that is not
// there as a file.
func isMissing(err error) bool { return errors.Is(err, fs.ErrNotExist) }
