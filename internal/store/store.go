// Package store reads and writes objects of object stores. It knows nothing of
// any of them: package cloud does, and a program that does not import it has no
// object stores.
package store

import (
	"context"
	"io"
	"time"
)

// Info describes an object.
type Info struct {
	Key      string
	Size     int64
	Modified time.Time // whole seconds, the same from Stat and List
	Version  string    // another one for other content; "" where the store has none
}

// If is the condition of a write; the zero value is none.
type If struct {
	Absent  bool   // there is no such object
	Version string // it has this version
}

// Store holds objects under keys separated by slashes. Errors are of type
// *Error. It may be used by several goroutines.
type Store interface {
	// URL names a key for people and for records: without parameters, which may
	// change from machine to machine.
	URL(key string) string
	// Stat fails with fs.ErrNotExist where there is no object.
	Stat(ctx context.Context, key string) (Info, error)
	// List calls each for the objects whose keys start with a prefix, in order of
	// their keys.
	List(ctx context.Context, prefix string, each func(Info) error) error
	// Dirs returns the names that follow a prefix up to the next slash.
	Dirs(ctx context.Context, prefix string) ([]string, error)
	// Read opens an object from an offset on. It fails where the object is not the
	// one that info describes.
	Read(ctx context.Context, info Info, offset, length int64) (io.ReadCloser, error)
	// Get returns a small object, of at most limit bytes.
	Get(ctx context.Context, key string, limit int64) ([]byte, error)
	// Put writes an object, all of it or nothing. Where the condition does not hold
	// it fails: with fs.ErrExist, or with an error of the kind Changed.
	Put(ctx context.Context, key string, src io.ReadSeeker, size int64, on If) error
	// Remove removes an object; one that is not there is no error.
	Remove(ctx context.Context, key string) error
}
