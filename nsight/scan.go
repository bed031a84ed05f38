package nsight

import (
	"context"
	"errors"
	"math"
	"os"
	"strconv"

	"tracelake/internal/freelist"
	"tracelake/internal/regular"
	"tracelake/nsight/btree"
	"tracelake/schema"
)

// database reads a database with the scan of whole tables, and hands over to
// the library what that does not know. The library also holds the read lock.
type database struct {
	*library
	f    *os.File
	scn  *btree.File
	o    Options
	seen int64 // bytes read
	free freelist.List[*batch]

	sound map[string]bool // tables that the library reads and has checked
}

// openSQLite opens a database.
func openSQLite(path string, o Options) (tables, error) {
	// POSIX drops the locks of a process when it closes any handle of a file:
	// this one is closed after that of the library.
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	l, err := openLibrary(path)
	if err != nil {
		err = betterReason(f, err)
		_ = f.Close()
		return nil, err
	}
	d := &database{library: l, f: f, o: o, sound: map[string]bool{}}
	d.free.New = func() *batch { return nil }
	if !o.Library && l.db.Plain {
		d.scn, err = btree.Open(f, l.size)
		if err != nil && !errors.Is(err, btree.ErrUnsupported) {
			_ = d.close()
			return nil, wordCorrupt(err)
		}
	}
	if d.scn == nil {
		if err := l.check(""); err != nil {
			err = betterReason(f, err)
			_ = d.close()
			return nil, err
		}
	}
	return d, nil
}

// betterReason finds the page that is behind a refusal of the library.
func betterReason(f *os.File, err error) error {
	st, serr := f.Stat()
	if serr != nil {
		return err
	}
	var c *btree.CorruptError
	if _, oerr := btree.Open(f, st.Size()); errors.As(oerr, &c) {
		return wordCorrupt(oerr)
	}
	return err
}

func wordCorrupt(err error) error {
	var c *btree.CorruptError
	if errors.As(err, &c) {
		return reject("%s: copy or export it again", c.Error())
	}
	return err
}

func (d *database) close() error { return errors.Join(d.library.close(), d.f.Close()) }

func (d *database) columns(table string) ([]string, error) {
	if d.scn != nil {
		if t := d.scn.Table(table); t != nil && !t.Unsupported {
			return t.Columns, nil
		}
	}
	return d.library.columns(table)
}

func (d *database) scan(ctx context.Context, table string, wants []want, only *idSet, emit func(*batch) error) error {
	var t *btree.Table
	if d.scn != nil {
		t = d.scn.Table(table)
	}
	if t == nil || t.Unsupported {
		return d.checked(ctx, table, wants, only, emit)
	}
	at := make([]int, len(wants))
	for j, w := range wants {
		at[j] = column(t.Columns, w.name)
		if at[j] >= 0 && t.Default(at[j]) {
			return d.checked(ctx, table, wants, only, emit)
		}
	}
	alloc := func() *batch {
		b := d.free.Get()
		if b == nil || len(b.cols) != len(wants) {
			b = &batch{cols: make([][]int64, len(wants)), texts: &texts{}}
		}
		b.reset()
		for j := range wants {
			if at[j] < 0 {
				b.cols[j] = nil
			} else if b.cols[j] == nil {
				b.cols[j] = make([]int64, 0, libraryRows)
			}
		}
		return b
	}
	err := btree.Scan(ctx, d.scn, t, d.workers(), d.o.Gate, alloc,
		func(b *batch, r *btree.Record) error { return b.record(r, wants, at, only) },
		func(b *batch, n int64) error {
			d.seen += n
			if d.o.Progress != nil {
				d.o.Progress(min(d.seen, d.size))
			}
			err := emit(b)
			d.free.Put(b)
			return err
		})
	return wordCorrupt(err)
}

// checked reads a table with the library, behind a check for damage that the
// scan would have met.
func (d *database) checked(ctx context.Context, table string, wants []want, only *idSet, emit func(*batch) error) error {
	if d.scn != nil && !d.sound[table] {
		what := table
		if d.view(table) { // of which tables, only its query says
			what = ""
		}
		if err := d.check(what); err != nil {
			return err
		}
		d.sound[table] = true
	}
	return d.library.scan(ctx, table, wants, only, emit)
}

func (d *database) workers() int { return max(1, d.o.Workers) }

// record appends a row.
func (b *batch) record(r *btree.Record, wants []want, at []int, only *idSet) error {
	if only != nil && at[0] >= 0 {
		if id, ok := r.Int(at[0]); ok && !only.has(id) {
			return nil
		}
	}
	for j, c := range at {
		if c < 0 {
			continue
		}
		v, ok := r.Int(c)
		switch {
		case !ok:
			var err error
			if v, err = b.other(r, c, wants[j].kind); err != nil {
				return err
			}
		case wants[j].kind == real:
			v = int64(math.Float64bits(float64(v)))
		case wants[j].kind == text:
			v = b.texts.put(strconv.AppendInt(nil, v, 10))
		}
		b.cols[j] = append(b.cols[j], v)
	}
	b.n++
	return nil
}

// other reads what is no integer, or an integer on another page.
func (b *batch) other(r *btree.Record, c int, k kind) (int64, error) {
	if err := r.Load(c); err != nil {
		return 0, err
	}
	switch r.Kind(c) {
	case btree.Null:
		return schema.Null, nil
	case btree.Integer:
		v, _ := r.Int(c)
		switch k {
		case real:
			return int64(math.Float64bits(float64(v))), nil
		case text:
			return b.texts.put(strconv.AppendInt(nil, v, 10)), nil
		}
		return v, nil
	case btree.Float:
		return b.fromFloat(r.Float(c), k), nil
	}
	if r.Len(c) > maxValueBytes {
		b.odd++
		return schema.Null, nil
	}
	s, err := r.Bytes(c)
	if err != nil {
		return 0, err
	}
	return b.fromText(s, k), nil
}
