package lake

import (
	"path/filepath"
	"sync"
)

// Lake is a dataset in a directory. Its methods may be called from several
// goroutines.
type Lake struct {
	root   string
	writer string // "" when opened for reading
	format Format

	mu  sync.Mutex
	idx index
}

func newLake(root string, f Format) *Lake {
	return &Lake{root: root, format: f, idx: newIndex()}
}

func newLakeWriter(root string, f Format, writer string) *Lake {
	l := newLake(root, f)
	l.writer = writer
	return l
}

// Root returns the directory of the lake as it was given.
func (l *Lake) Root() string { return l.root }

// Format returns what format.json said when the lake was opened.
func (l *Lake) Format() Format { return l.format }

func (l *Lake) meta(elem ...string) string {
	return filepath.Join(append([]string{l.root, MetaDir}, elem...)...)
}

// Abs turns the slash-separated path of a file within the lake into a path of
// the operating system.
func (l *Lake) Abs(rel string) string { return filepath.Join(l.root, filepath.FromSlash(rel)) }
