package collect

import (
	"errors"
	"os"

	"tracelake/internal/filelock"
)

// tryLock takes a lock until the result is closed, or until this process ends. It
// returns nil without an error where another process holds it. The file stays:
// removing it would let two processes hold it.
func tryLock(path string) (*os.File, error) {
	f, err := filelock.Hold(path, filelock.Try)
	if errors.Is(err, filelock.ErrLocked) {
		return nil, nil
	}
	return f, err
}
