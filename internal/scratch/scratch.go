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
	lock *os.File // nil where there is none
}

// swept are the directories that this process has looked through.
var swept sync.Map

// New makes a directory below the system's directory for temporary files.
func New() (*Dir, error) { return In("") }

// In makes a directory below another one; "" is the system's directory for
// temporary files.
func In(parent string) (*Dir, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	if _, done := swept.LoadOrStore(parent, true); !done {
		sweep(parent, ownPrefix())
	}
	d, err := newDir(parent, ownPrefix(), false)
	if err != nil {
		return nil, fmt.Errorf("temporary directory: %w", err)
	}
	return d, nil
}

// newDir makes a directory with a lock, or, where the file system has no locks and
// that is asked for, without one: then nobody sweeps it.
func newDir(parent, own string, evenUnlocked bool) (*Dir, error) {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	path := filepath.Join(parent, own+hex.EncodeToString(b[:]))
	// The lock comes first: what can be locked belongs to the dead.
	lock, err := filelock.Acquire(path+lockSuffix, filelock.Wait)
	if err != nil {
		_ = os.Remove(path + lockSuffix)
		if !evenUnlocked {
			return nil, err
		}
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		if lock != nil {
			filelock.Release(lock)
		}
		return nil, err
	}
	return &Dir{path: path, lock: lock}, nil
}

// Path returns where the directory is.
func (d *Dir) Path() string { return d.path }

// Remove removes the directory and all that is in it.
func (d *Dir) Remove() error {
	err := os.RemoveAll(d.path)
	if d.lock == nil {
		return err
	}
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
	return prefix + strings.ReplaceAll(host, string(filepath.Separator), "_") + "-"
}

// sweep removes the directories of dead processes whose names begin in one way.
func sweep(parent, own string) {
	entries, _ := os.ReadDir(parent) // what cannot be read is not swept
	if !filelock.Have {
		return
	}
	for _, e := range entries {
		dir, isLock := strings.CutSuffix(e.Name(), lockSuffix)
		random, ours := strings.CutPrefix(dir, own)
		if !isLock || !ours || strings.Contains(random, "-") || !e.Type().IsRegular() { // host gpu is not host gpu-1
			continue
		}
		lock, err := filelock.Acquire(filepath.Join(parent, e.Name()), filelock.Try)
		if err != nil {
			continue // its process lives, or is another user's
		}
		if os.RemoveAll(filepath.Join(parent, dir)) == nil {
			filelock.Release(lock)
			continue
		}
		lock.Close()
	}
}
