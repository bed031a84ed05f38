package btree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrUnsupported means that SQLite has to read the database or table.
var ErrUnsupported = errors.New("btree: left to SQLite")

// CorruptError is a page that contradicts the file format.
type CorruptError struct {
	Page uint32 // from 1; 0 for the file as a whole
	What string
}

func (e *CorruptError) Error() string {
	if e.Page == 0 {
		return "the database is damaged: " + e.What
	}
	return fmt.Sprintf("the database is damaged at page %d: %s", e.Page, e.What)
}

func corrupt(page uint32, format string, a ...any) error {
	return &CorruptError{page, fmt.Sprintf(format, a...)}
}

// File is a database.
type File struct {
	r        io.ReaderAt
	pageSize int
	usable   int // bytes of a page without the reserved ones
	pages    uint32
	Tables   []*Table
}

// Magic starts every database.
const Magic = "SQLite format 3\x00"

// Limits of what is believed about a schema.
const (
	maxTables  = 10_000
	maxColumns = 2_000
	maxSQL     = 4 << 20
	maxDepth   = 20
)

// Open reads the header and the schema of a database of the given size.
func Open(r io.ReaderAt, size int64) (*File, error) {
	var h [100]byte
	if size < int64(len(h)) {
		return nil, corrupt(0, "the file has %d bytes", size)
	}
	if _, err := r.ReadAt(h[:], 0); err != nil {
		return nil, err
	}
	if string(h[:16]) != Magic {
		return nil, corrupt(0, "not a database of SQLite")
	}
	f := &File{r: r, pageSize: int(binary.BigEndian.Uint16(h[16:]))}
	if f.pageSize == 1 {
		f.pageSize = 65536
	}
	f.usable = f.pageSize - int(h[20])
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 || f.usable < 480 {
		return nil, corrupt(1, "a page size of %d bytes, of which %d are reserved", f.pageSize, h[20])
	}
	encoding := binary.BigEndian.Uint32(h[56:])
	if h[18] > 1 || h[19] > 1 || h[21] != 64 || h[22] != 32 || h[23] != 32 || encoding != 1 || binary.BigEndian.Uint32(h[44:]) > 4 {
		return nil, ErrUnsupported
	}
	have := size / int64(f.pageSize)
	claimed := int64(binary.BigEndian.Uint32(h[28:]))
	if binary.BigEndian.Uint32(h[24:]) != binary.BigEndian.Uint32(h[92:]) || claimed == 0 {
		claimed = have
	}
	if claimed > have {
		return nil, corrupt(0, "the file is cut: it holds %d of %d pages", have, claimed)
	}
	f.pages = uint32(min(claimed, 1<<32-2))
	return f, f.schema()
}

// schema reads the tables from sqlite_schema, which starts on page 1.
func (f *File) schema() error {
	root := &Table{Name: "sqlite_schema", root: 1, rowid: -1, Columns: []string{"type", "name", "tbl_name", "rootpage", "sql"}}
	root.defaults = make([]bool, len(root.Columns))
	var rec Record
	s := newScanner(f, root)
	leaves, err := s.leaves()
	if err != nil {
		return err
	}
	for _, leaf := range leaves {
		page, err := f.read(leaf, nil)
		if err != nil {
			return err
		}
		err = s.leaf(leaf, page, &rec, func(rec *Record) error {
			kind, err := rec.Bytes(0)
			if err != nil || string(kind) != "table" {
				return err
			}
			if len(f.Tables) == maxTables {
				return corrupt(leaf, "more than %d tables", maxTables)
			}
			if _, _, n := rec.column(4); n > maxSQL {
				return ErrUnsupported
			}
			sql, err := rec.Bytes(4)
			if err != nil {
				return err
			}
			name, err := rec.Bytes(1)
			if err != nil {
				return err
			}
			t := parseTable(string(sql))
			t.Name = string(name)
			page, ok := rec.Int(3)
			if !ok || page < 1 || page > int64(f.pages) {
				t.Unsupported = true // a virtual table has no pages
			}
			t.root = uint32(page)
			f.Tables = append(f.Tables, t)
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Table returns a table by name, or nil.
func (f *File) Table(name string) *Table {
	for _, t := range f.Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// PageSize returns the size of a page in bytes.
func (f *File) PageSize() int { return f.pageSize }

// read reads a page into buf, which grows where it has to.
func (f *File) read(page uint32, buf []byte) ([]byte, error) {
	return f.readRun(page, 1, buf)
}

// readRun reads consecutive pages.
func (f *File) readRun(page uint32, n int, buf []byte) ([]byte, error) {
	if page < 1 || uint64(page)+uint64(n)-1 > uint64(f.pages) {
		return nil, corrupt(page, "no such page: the file has %d", f.pages)
	}
	size := n * f.pageSize
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	buf = buf[:size]
	got, err := f.r.ReadAt(buf, int64(page-1)*int64(f.pageSize))
	if got < size {
		if err == nil || errors.Is(err, io.EOF) {
			err = corrupt(page, "the file became shorter while it was read")
		}
		return nil, err
	}
	return buf, nil
}
