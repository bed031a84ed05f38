package lake

import (
	"path/filepath"
	"sync"
)

// Lake is a dataset in a directory or below a prefix of an object store. Its
// methods may be called from several goroutines.
type Lake struct {
	root   string // directory; "" in an object store
	at     place
	writer string // "" when opened for reading
	format Format

	mu  sync.Mutex
	idx index
}

func newLake(at place, f Format) *Lake {
	l := &Lake{at: at, format: f, idx: newIndex()}
	if d, ok := at.(directory); ok {
		l.root = string(d)
	}
	return l
}

func newLakeWriter(at place, f Format, writer string) *Lake {
	l := newLake(at, f)
	l.writer = writer
	return l
}

// Root returns the directory of the lake as it was given, or its URL without
// parameters.
func (l *Lake) Root() string {
	if o := l.remote(); o != nil {
		return o.path("")
	}
	return l.root
}

// Remote reports whether the lake stands in an object store.
func (l *Lake) Remote() bool { return l.remote() != nil }

// Format returns what format.json said when the lake was opened.
func (l *Lake) Format() Format { return l.format }

func (l *Lake) meta(elem ...string) string {
	return filepath.Join(append([]string{l.root, MetaDir}, elem...)...)
}

// Abs turns the slash-separated path of a file within the lake into a path of
// the operating system, or a URL.
func (l *Lake) Abs(rel string) string { return l.at.path(rel) }
