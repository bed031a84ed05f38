package scratch

import (
	"errors"
	"os"
	"path/filepath"
)

// Output is a file or directory that has its name only once it is complete. Until
// then it lies beside that, below a directory of its own: processes that write the
// same output do not meet, and the last one to finish wins. The directory has a
// hidden name, because half of a trace may look like a trace.
type Output struct {
	dir *Dir
	to  string
}

// NewOutput begins an output, and removes what killed processes left of others in
// the same directory.
func NewOutput(path string) (*Output, error) {
	parent, own := filepath.Dir(path), "."+ownPrefix()
	sweep(parent, own)
	dir, err := newDir(parent, own, true)
	if err != nil {
		return nil, err
	}
	return &Output{dir, path}, nil
}

// Path returns where the output is to be made. Nothing is there yet.
func (o *Output) Path() string { return filepath.Join(o.dir.path, filepath.Base(o.to)) }

// Finish gives the output its name, or removes it where that fails.
func (o *Output) Finish() error {
	if err := os.Rename(o.Path(), o.to); err != nil {
		return errors.Join(err, o.Abandon())
	}
	_ = o.Abandon() // the output is complete; what is left goes with the next one
	return nil
}

// Abandon removes the output unless it is finished.
func (o *Output) Abandon() error {
	if o.dir == nil {
		return nil
	}
	dir := o.dir
	o.dir = nil
	return dir.Remove()
}
