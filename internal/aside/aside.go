// Package aside keeps bytes that need not stay in memory in a file.
package aside

import (
	"fmt"
	"os"
	"sync"
)

// File takes bytes while it can be written; afterwards they have to stay where
// they are. The nil File takes none. Its methods may be called at once.
type File struct {
	open func() (*os.File, error)

	mu   sync.Mutex
	f    *os.File
	end  int64
	full bool // a write failed: nothing more goes there
	err  error
}

// New returns a File that is opened when the first bytes come, and closed by
// Close.
func New(open func() (*os.File, error)) *File { return &File{open: open} }

// Put appends bytes and says where they are. Where that fails nothing is lost:
// ok is false, as in every later call.
func (a *File) Put(b []byte) (at int64, ok bool) {
	if a == nil {
		return 0, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var err error
	if a.f == nil && !a.full {
		a.f, err = a.open()
	}
	if err == nil && !a.full {
		_, err = a.f.WriteAt(b, a.end)
	}
	if a.full = a.full || err != nil; a.full {
		return 0, false
	}
	at, a.end = a.end, a.end+int64(len(b))
	return at, true
}

// Full reports whether Put takes no more.
func (a *File) Full() bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.full
}

// ReadAt reads what Put wrote.
func (a *File) ReadAt(b []byte, at int64) (int, error) {
	a.mu.Lock()
	f := a.f
	a.mu.Unlock()
	n, err := f.ReadAt(b, at)
	if err != nil {
		err = fmt.Errorf("what was put aside cannot be read: %w", err)
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.err == nil {
			a.err = err
		}
	}
	return n, err
}

// Err returns the first failure to read.
func (a *File) Err() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Close closes the file if there is one. Nothing can be put or read afterwards.
func (a *File) Close() {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.full = true
	if a.f != nil {
		a.f.Close()
	}
}
