// Package regular opens files of people: pipes, devices and sockets under the
// name of a file would block, never end, or give their bytes only once.
package regular

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// Errors of what is no regular file, wrapped in an *fs.PathError.
var (
	ErrDirectory = errors.New("is a directory")
	ErrPipe      = errors.New("is a named pipe or a socket, which can be read only once: write it to a file, or give it to a command that reads standard input")
	ErrDevice    = errors.New("is a device and no file")
)

// Open opens a regular file to be read. It never waits for a writer.
func Open(path string) (*os.File, error) {
	if st, err := os.Stat(path); err == nil {
		// Devices may do something when they are opened.
		if err := Check(path, st.Mode()); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|nonBlocking, 0)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		err = Check(path, st.Mode())
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ReadFile is os.ReadFile of a regular file.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// Check returns an error for everything but regular files.
func Check(path string, mode fs.FileMode) error {
	why := ErrDevice
	switch {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		why = ErrDirectory
	case mode&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		why = ErrPipe
	}
	return &fs.PathError{Op: "open", Path: path, Err: why}
}
