package regular

import (
	"io/fs"
	"os"
	"path/filepath"
)

// WalkDir is filepath.WalkDir of a directory that somebody named, perhaps by a
// link to it, which filepath.WalkDir does not enter. Links below are not followed.
func WalkDir(root string, f fs.WalkDirFunc) error {
	from := root
	if st, err := os.Lstat(root); err == nil && st.Mode()&fs.ModeSymlink != 0 {
		if st, err := os.Stat(root); err == nil && st.IsDir() {
			from += string(filepath.Separator) // follows the link and keeps its name
		}
	}
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if path == from {
			path = root
		}
		return f(path, e, err)
	})
}
