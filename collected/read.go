package collected

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// Options say how a table file is read.
type Options struct {
	Keys     Keys
	Name     string // how messages call the file
	RowGroup int    // rows
	Rows     int64  // rows that the file must have; -1 where nobody knows
	// Start is called with the declaration once the header was read. It says
	// why the table cannot be taken, or fails.
	Start func(*schema.Table) (problem string, err error)
	// RowGroups takes the rows.
	RowGroups func(t *schema.Table, rows int, cols []schema.Vector) error
	Diags     *schema.Diagnostics
	Digest    io.Writer // gets the bytes of the file; may be nil
}

// Read reads a table file as a stream. What is wrong with the file becomes a
// diagnostic that names file and line; an error comes from the callbacks, from
// the context, or from reading.
func Read(ctx context.Context, path string, o Options) error {
	f, err := regular.Open(path)
	if err != nil {
		o.Diags.Add(schema.TableUnread, schema.Null, schema.Null, 1, fmt.Sprintf("%s: %v", o.Name, errors.Unwrap(err)))
		return nil
	}
	defer f.Close()
	if o.Digest == nil {
		return read(ctx, f, o)
	}
	in := io.TeeReader(f, o.Digest)
	if err := read(ctx, in, o); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in) // where reading ended early
	return err
}

func read(ctx context.Context, in io.Reader, o Options) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r := &reader{o: o, lines: lines{in: bufio.NewReaderSize(in, 256<<10)}}
	if !r.header() {
		return r.lines.err
	}
	problem, err := o.Start(r.t)
	if err != nil {
		return err
	}
	if problem != "" {
		r.unread(problem)
		return nil
	}
	for {
		if r.lines.n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, ok := r.lines.next(maxLine)
		if !ok {
			break
		}
		r.row(line)
		if r.g.n >= o.RowGroup || r.g.bytes >= MaxGroupText {
			if err := r.flush(); err != nil {
				return err
			}
		}
	}
	if r.lines.err != nil {
		return fmt.Errorf("%s:%d: %w", o.Name, r.lines.n+1, r.lines.err)
	}
	if lost := o.Rows - r.rows - r.bad; o.Rows >= 0 && lost > 0 {
		r.note(schema.TableCut, lost, fmt.Sprintf("%s: the status file promises %d rows, the file has %d", o.Name, o.Rows, r.rows+r.bad))
	}
	return r.flush()
}

type reader struct {
	o      Options
	lines  lines
	t      *schema.Table
	g      *group
	at     map[string]int // column by key
	skip   map[string]bool
	fields []field
	seen   []int64 // number of the row that set a column last
	rows   int64   // read
	bad    int64   // set aside
}

func (r *reader) note(code schema.Code, n int64, message string) {
	r.o.Diags.Add(code, r.lines.offset, schema.Null, n, message)
}

func (r *reader) unread(why string) {
	r.o.Diags.Add(schema.TableUnread, schema.Null, schema.Null, 1, fmt.Sprintf("%s:1: %s", r.o.Name, why))
}

func (r *reader) header() bool {
	line, ok := r.lines.next(maxHeader)
	fail := func(why string) bool {
		r.unread(why)
		return false
	}
	switch {
	case r.lines.err != nil:
		return false
	case !ok:
		return fail("the file is empty; a table starts with a line that declares it")
	case r.lines.long:
		return fail("the first line is longer than 1 MiB")
	}
	h, err := parseHeader(line)
	if err != nil {
		return fail(err.Error())
	}
	t, missing, extra, err := h.declaration()
	if err != nil {
		return fail(err.Error())
	}
	if len(missing) > 0 {
		r.note(schema.TableColumns, int64(len(missing)), fmt.Sprintf("%s:1: table %s lacks %s; they are null", r.o.Name, h.Table, list(missing)))
	}
	r.skip = map[string]bool{}
	if len(extra) > 0 {
		r.note(schema.TableValue, int64(len(extra)), fmt.Sprintf("%s:1: table %s has no columns %s; their values are left out", r.o.Name, h.Table, list(extra)))
		for _, c := range extra {
			r.skip[c] = true
		}
	}
	if r.o.Keys.Tracer == "" {
		r.o.Keys.Tracer = h.Tracer
	}
	if r.o.Keys.TracerVersion == "" {
		r.o.Keys.TracerVersion = h.TracerVersion
	}
	r.t, r.at = t, map[string]int{}
	for i := schema.CollectedKeys; i < len(t.Columns); i++ {
		r.at[t.Columns[i].Name] = i
	}
	r.seen = make([]int64, len(t.Columns))
	r.g = newGroup(t, r.o.Keys)
	return true
}

func list(names []string) string {
	const most = 8
	if len(names) > most {
		return fmt.Sprintf("%.200q and %d more", names[:most], len(names)-most)
	}
	return fmt.Sprintf("%.200q", names)
}

// row stores a line. A line that is no row is set aside; a value that has no
// place is left out of its row. Either is counted.
func (r *reader) row(line []byte) {
	where := func() string { return r.o.Name + ":" + strconv.FormatInt(r.lines.n, 10) }
	if len(bytes.TrimSpace(line)) == 0 && !r.lines.long {
		return
	}
	var ok bool
	if !r.lines.long {
		r.fields, ok = splitRow(line, r.fields)
	}
	if !ok {
		r.bad++
		switch {
		case r.lines.long:
			r.note(schema.TableRow, 1, where()+": the line is longer than 64 MiB")
		case !r.lines.ended:
			r.note(schema.TableCut, 1, where()+": the file ends inside the line")
		default:
			r.note(schema.TableRow, 1, where()+": the line is no JSON object")
		}
		return
	}
	r.rows++
	if !utf8.Valid(line) {
		r.note(schema.InvalidUTF8, 1, where()+": bytes that are not UTF-8 were replaced")
	}
	for _, f := range r.fields {
		key := string(f.key)
		c, known := r.at[key]
		if !known {
			if !r.skip[key] {
				r.note(schema.TableValue, 1, fmt.Sprintf("%s: no column %.60q was declared; the value is left out", where(), key))
			}
			continue
		}
		col := &r.t.Columns[c]
		v, text, null, ok := decode(col, f.value)
		switch {
		case r.seen[c] == r.rows:
			r.note(schema.TableValue, 1, fmt.Sprintf("%s: column %s is given twice; the first value counts", where(), key))
		case !ok:
			r.note(schema.TableValue, 1, fmt.Sprintf("%s: column %s is %s and not %.40s; the value is left out", where(), key, col.Type, f.value))
		case !null:
			r.g.add(c, v, text)
		}
		r.seen[c] = r.rows
	}
	r.g.n++
}

func (r *reader) flush() error {
	if r.g.n == 0 {
		return nil
	}
	n, cols := r.g.take()
	return r.o.RowGroups(r.t, n, cols)
}
