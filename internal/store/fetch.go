package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"

	"tracelake/internal/scratch"
)

// Fetch copies objects into a directory that remove removes, under the last
// parts of their keys. It is for formats that are read here and there. Together
// they may have at most limit bytes.
func Fetch(ctx context.Context, s Store, list []Info, limit int64) (dir string, remove func(), err error) {
	total := int64(0)
	for _, info := range list {
		total += info.Size
	}
	if total > limit {
		return "", nil, &Error{
			URL: s.URL(list[0].Key), Kind: Other,
			Text: fmt.Sprintf("must be copied to read it; its %d bytes are more than the %d that may be kept in %s: give it more room, or name another directory with TMPDIR", total, limit, os.TempDir()),
		}
	}
	tmp, err := scratch.New()
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = tmp.Remove() } // the next sweep tries again
	for _, info := range list {
		if err := Download(ctx, s, info, filepath.Join(tmp.Path(), filepath.Base(filepath.FromSlash(path.Base(info.Key))))); err != nil {
			remove()
			return "", nil, err
		}
	}
	return tmp.Path(), remove, nil
}

// Download copies an object into a new file.
func Download(ctx context.Context, s Store, info Info, to string) error {
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	in := Open(ctx, s, info)
	defer in.Close()
	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Close())
	if err != nil {
		os.Remove(to)
	}
	return err
}
