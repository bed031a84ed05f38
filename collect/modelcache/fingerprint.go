package modelcache

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Fingerprint stands for the contents of a directory outside of the cache,
// where no commit does: names and sizes of all files, the bytes of small ones,
// the modification times of large ones.
func Fingerprint(dir string) (string, error) {
	h := sha256.New()
	dir, err := filepath.EvalSymlinks(dir) // which WalkDir does not follow
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if path != dir && strings.HasPrefix(d.Name(), ".") {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		st, err := os.Stat(path)
		if err != nil || !st.Mode().IsRegular() {
			return nil // dangling links are the check's business
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %d ", rel, st.Size())
		if st.Size() > 1<<20 {
			fmt.Fprintln(h, st.ModTime().UnixNano())
			return nil
		}
		text, err := readSmall(path, 1<<20)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		fmt.Fprintln(h, hex.EncodeToString(sum[:]))
		return nil
	})
	if err != nil {
		return "", err
	}
	return "local:" + hex.EncodeToString(h.Sum(nil))[:32], nil
}
