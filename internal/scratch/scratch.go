// Package scratch makes temporary directories that do not outlive their process
// for long: what a killed one left is removed by the next that makes one on the
// same machine.
package scratch

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"tracelake/internal/filelock"
)

const (
	prefix     = "tracelake-scratch-"
	lockSuffix = ".lock"
)

// Dir is a temporary directory.
type Dir struct {
	path string
	lock *os.File
}

var sweepOnce sync.Once

// New makes a directory below the system's directory for temporary files.
func New() (*Dir, error) {
	sweepOnce.Do(sweep)
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	path := filepath.Join(os.TempDir(), ownPrefix()+hex.EncodeToString(b[:]))
	// The lock comes first: a directory without one belongs to the dead.
	lock, err := filelock.Acquire(path+lockSuffix, filelock.Wait)
	if err != nil {
		return nil, fmt.Errorf("temporary directory: %w", err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		filelock.Release(lock)
		return nil, fmt.Errorf("temporary directory: %w", err)
	}
	return &Dir{path: path, lock: lock}, nil
}

// Path returns where the directory is.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory and all that is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.path)
	if err == nil {
		filelock.Release(d.lock)
		return nil
	}
	return errors.Join(err, d.lock.Close()) // the next sweep tries again
}

// ownPrefix names the machine: locks may be invisible to another one that shares
// the directory.
func ownPrefix() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return prefix + strings.Map(func(r rune) rune {
		if r == filepath.Separator || r == '*' || r == '?' || r == '[' || r == '\\' {
			return '_'
		}
		return r
	}, host) + "-"
}

// sweep removes the directories of dead processes.
func sweep() {
	if !filelock.Have {
		return
	}
	locks, _ := filepath.Glob(filepath.Join(os.TempDir(), ownPrefix()+"*"+lockSuffix)) // fails for bad patterns only
	for _, name := range locks {
		lock, err := filelock.Acquire(name, filelock.Try)
		if err != nil {
			continue // its process lives, or is another user's
		}
		if os.RemoveAll(strings.TrimSuffix(name, lockSuffix)) == nil {
			filelock.Release(lock)
			continue
		}
		lock.Close()
	}
}
