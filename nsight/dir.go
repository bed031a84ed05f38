package nsight

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tracelake/internal/guard"
)

// tableFile is a table of an export that stands in a file, or a part of one.
type tableFile interface {
	columns() ([]string, error)
	scan(ctx context.Context, wants []want, emit func(*batch) error) error
}

// directory is an export with a file per table, or one file with all of them.
type directory struct {
	kind  string
	order []string
	files map[string]tableFile
	size  int64
	shut  func() error
	cut   string // what is missing at the end; "" where nothing is
}

// openDir opens a parquetdir or an arrowdir.
func openDir(path string, kind Kind) (tables, error) {
	d := &directory{kind: "arrowdir", files: map[string]tableFile{}, shut: func() error { return nil }}
	if kind == ParquetDir {
		d.kind = "parquetdir"
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext)
		if e.IsDir() || name == "" || strings.HasPrefix(name, ".") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			if info, err = os.Stat(filepath.Join(path, e.Name())); err != nil || !info.Mode().IsRegular() {
				continue
			}
		}
		file := filepath.Join(path, e.Name())
		switch {
		case kind == ParquetDir && ext == ".parquet":
			d.put(name, &parquetTable{path: file})
		case kind == ArrowDir && (ext == ".arrow" || ext == ".arrows"):
			d.put(name, &arrowTable{path: file})
		default:
			continue
		}
		d.size += info.Size()
		if len(d.order) > maxTables {
			return nil, reject("more than %d tables", maxTables)
		}
	}
	return d, nil
}

func (d *directory) put(name string, t tableFile) {
	if _, ok := d.files[name]; !ok {
		d.order = append(d.order, name)
	}
	d.files[name] = t
}

func (d *directory) format() string { return d.kind }

func (d *directory) names() []string { return d.order }

func (d *directory) view(string) bool { return false }

func (d *directory) bytes() int64 { return d.size }

func (d *directory) close() error { return d.shut() }

func (d *directory) columns(table string) ([]string, error) { return d.files[table].columns() }

func (d *directory) scan(ctx context.Context, table string, wants []want, _ *idSet, emit func(*batch) error) error {
	return d.files[table].scan(ctx, wants, emit)
}

// guarded turns a panic of a library on a damaged file into a refusal.
func guarded(path string, f func() error) error {
	err := guard.Call(f)
	if p := (*guard.PanicError)(nil); errors.As(err, &p) {
		return damaged(path, err)
	}
	return err
}

// damaged names the file. What a library says may quote the file, so only the
// fact is passed on.
func damaged(path string, _ error) error {
	return reject("%s is damaged: export the report again", filepath.Base(path))
}
