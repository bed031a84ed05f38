package collect

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"tracelake/internal/regular"
)

// Model is what to trace: a repository of the hub, or a directory.
type Model struct {
	ID       string // "org/name", or the directory's name
	Revision string // as asked for, "" for main
	Path     string // of a directory; "" for the hub
}

func (m Model) String() string {
	if m.Path != "" {
		return m.Path
	}
	if m.Revision != "" {
		return m.ID + "@" + m.Revision
	}
	return m.ID
}

// Subdir is where results of a model lie below the output directory.
func (m Model) Subdir() string {
	if m.Path != "" {
		sum := sha256.Sum256([]byte(m.Path))
		return filepath.Join("_local", m.ID+"-"+hex.EncodeToString(sum[:4]))
	}
	dir := filepath.FromSlash(m.ID)
	if m.Revision != "" {
		dir += "@" + url.PathEscape(m.Revision)
	}
	return dir
}

// UsageError is a request that cannot be meant.
type UsageError struct{ Text string }

func (e *UsageError) Error() string { return e.Text }

func usage(format string, a ...any) error { return &UsageError{fmt.Sprintf(format, a...)} }

var (
	repoName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*)?$`)
	revision = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._+/-]*$`)
)

// ParseModel reads ORG/NAME, ORG/NAME@REVISION or a path, which begins with /,
// ./, ../ or ~/.
func ParseModel(text string) (Model, error) {
	if len(text) > 4096 || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return Model{}, usage("%.60q is no name of a model", text)
	}
	if isPath(text) {
		if rest, ok := strings.CutPrefix(text, "~"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return Model{}, err
			}
			text = home + rest
		}
		abs, err := filepath.Abs(text)
		if err != nil {
			return Model{}, err
		}
		return Model{ID: filepath.Base(abs), Path: abs}, nil
	}
	id, rev, pinned := strings.Cut(text, "@")
	if !repoName.MatchString(id) || len(id) > 200 || strings.Contains(id, "..") || strings.Contains(id, "--") || strings.HasSuffix(id, ".") {
		return Model{}, usage("%.80q is no name of a model: want ORG/NAME, ORG/NAME@REVISION, or a path that begins with / or ./", text)
	}
	if pinned && (!revision.MatchString(rev) || len(rev) > 200 || !filepath.IsLocal(rev) || strings.Contains(rev, "..") || strings.Contains(rev, "//")) {
		return Model{}, usage("%.80q: %q is no revision", text, rev)
	}
	return Model{ID: id, Revision: rev}, nil
}

func isPath(text string) bool {
	return text == "." || text == ".." || text == "~" || strings.HasPrefix(text, "/") || strings.HasPrefix(text, "./") ||
		strings.HasPrefix(text, "../") || strings.HasPrefix(text, "~/")
}

const maxLine = 8192

// ReadModelList reads one model per line. Blank lines and lines that begin with
// # are ignored; the first of equal lines counts.
func ReadModelList(path string) ([]Model, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readModelList(f, path)
}

func readModelList(r io.Reader, path string) ([]Model, error) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	var out []Model
	n := 0
	for sc.Scan() {
		n++
		line := sc.Text()
		if n == 1 {
			line = strings.TrimPrefix(line, "\ufeff")
		}
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		m, err := ParseModel(line)
		if err != nil {
			return nil, usage("%s:%d: %v", path, n, err)
		}
		out = append(out, m)
	}
	if err := sc.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, usage("%s:%d: a line of more than %d bytes", path, n+1, maxLine)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return unique(out, nil), nil
}

// Without drops models that a skip list names: with a revision only that one,
// without any.
func Without(models, skip []Model) []Model { return unique(models, skip) }

func unique(models, skip []Model) []Model {
	seen, dropped := map[Model]bool{}, map[Model]bool{}
	for _, m := range skip {
		dropped[m] = true
	}
	out := make([]Model, 0, len(models))
	for _, m := range models {
		unpinned := m
		unpinned.Revision = ""
		if seen[m] || dropped[m] || dropped[unpinned] {
			continue
		}
		seen[m] = true
		out = append(out, m)
	}
	return out
}
