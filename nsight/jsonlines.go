package nsight

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// jsonTable is a table of a JSON lines export: the lines between two offsets
// that name it.
type jsonTable struct {
	path        string
	name        string
	first, last int64 // offsets of its first line and behind its last one
	line        int64 // number of the first line
	cols        []string
	have        map[string]bool
}

// openJSONLines reads a file once to find its tables and their columns.
func openJSONLines(path string) (tables, error) {
	d := &directory{kind: "jsonlines", files: map[string]tableFile{}, shut: func() error { return nil }}
	err := eachLine(path, 0, -1, 1, func(line []byte, number, from, to int64) error {
		name, err := tableOf(line)
		if err != nil || name == "" {
			return reject("line %d is no row of a table", number)
		}
		t, ok := d.files[name].(*jsonTable)
		if !ok {
			if len(d.order) == maxTables {
				return reject("more than %d tables", maxTables)
			}
			t = &jsonTable{path: path, name: name, first: from, line: number, have: map[string]bool{}}
			d.put(name, t)
		}
		t.last = to
		d.size = to
		return members(line, func(key string, _ []byte) error {
			if key != "table" && !t.have[key] && len(t.cols) < 4096 {
				t.have[key] = true
				t.cols = append(t.cols, key)
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// eachLine gives the lines of a file between two offsets, empty ones left out.
func eachLine(path string, from, to, number int64, f func(line []byte, number, from, to int64) error) error {
	file, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if to < 0 {
		st, err := file.Stat()
		if err != nil {
			return err
		}
		to = st.Size()
	}
	r := bufio.NewReaderSize(io.NewSectionReader(file, from, to-from), 1<<20)
	var long []byte
	for at := from; at < to; number++ {
		line, err := r.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			long = long[:0]
			for errors.Is(err, bufio.ErrBufferFull) {
				if long = append(long, line...); len(long) > maxLineBytes {
					return reject("line %d is longer than %d MiB", number, maxLineBytes>>20)
				}
				line, err = r.ReadSlice('\n')
			}
			long = append(long, line...)
			line = long
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) == 0 {
			break
		}
		start := at
		at += int64(len(line))
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := f(line, number, start, at); err != nil {
			return err
		}
	}
	return nil
}

var errLine = errors.New("no JSON object")

// members gives the keys and values of a JSON object.
func members(line []byte, f func(key string, value []byte) error) error {
	if line[0] != '{' || line[len(line)-1] != '}' {
		return errLine
	}
	i := space(line, 1)
	if line[i] == '}' && i == len(line)-1 {
		return nil
	}
	for {
		end, ok := endOfValue(line, i)
		if !ok || line[i] != '"' {
			return errLine
		}
		key, err := unquote(line[i:end])
		if err != nil {
			return errLine
		}
		if i = space(line, end); i >= len(line) || line[i] != ':' {
			return errLine
		}
		i = space(line, i+1)
		end, ok = endOfValue(line, i)
		if !ok {
			return errLine
		}
		if err := f(key, line[i:end]); err != nil {
			return err
		}
		if i = space(line, end); i >= len(line) {
			return errLine
		}
		if line[i] == '}' {
			if i != len(line)-1 {
				return errLine
			}
			return nil
		}
		if line[i] != ',' {
			return errLine
		}
		i = space(line, i+1)
	}
}

func space(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// endOfValue returns where the value that starts at i ends. It does not judge
// numbers and words; what reads them does.
func endOfValue(b []byte, i int) (int, bool) {
	if i >= len(b) {
		return 0, false
	}
	switch b[i] {
	case '"':
		for k := i + 1; k < len(b); k++ {
			switch b[k] {
			case '\\':
				k++
			case '"':
				return k + 1, true
			}
		}
		return 0, false
	case '{', '[':
		depth := 0
		for k := i; k < len(b); k++ {
			switch b[k] {
			case '"':
				end, ok := endOfValue(b, k)
				if !ok {
					return 0, false
				}
				k = end - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return k + 1, true
				}
			}
		}
		return 0, false
	}
	k := i
	for k < len(b) && b[k] != ',' && b[k] != '}' && b[k] != ' ' && b[k] != '\t' && b[k] != '\r' && b[k] != ':' {
		k++
	}
	return k, k > i
}

// unquote reads a JSON string.
func unquote(b []byte) (string, error) {
	if len(b) < 2 || b[0] != '"' {
		return "", errLine
	}
	if bytes.IndexByte(b, '\\') < 0 {
		return string(b[1 : len(b)-1]), nil
	}
	var s string
	err := json.Unmarshal(b, &s)
	return s, err
}

func tableOf(line []byte) (name string, err error) {
	err = members(line, func(key string, value []byte) (err error) {
		if key == "table" && value[0] == '"' {
			name, err = unquote(value)
		}
		return err
	})
	return name, err
}

func (t *jsonTable) columns() ([]string, error) { return t.cols, nil }

func (t *jsonTable) scan(ctx context.Context, wants []want, emit func(*batch) error) error {
	at := map[string]int{}
	// Lines leave out what is null: where nothing ends, no line has the key.
	b := newBatch(wants, func(j int) bool { return wants[j].name == "end" || column(t.cols, wants[j].name) >= 0 })
	for j, w := range wants {
		if c := column(t.cols, w.name); c >= 0 {
			at[t.cols[c]] = j
		}
	}
	err := eachLine(t.path, t.first, t.last, t.line, func(line []byte, number, _, _ int64) error {
		for j := range b.cols {
			if b.cols[j] != nil {
				b.cols[j] = append(b.cols[j], schema.Null)
			}
		}
		mine := false
		err := members(line, func(key string, value []byte) error {
			if key == "table" {
				name, err := unquote(value)
				mine = err == nil && name == t.name
			}
			j, ok := at[key]
			if !ok {
				return nil
			}
			v, err := b.jsonValue(value, wants[j].kind)
			b.cols[j][b.n] = v
			return err
		})
		if err != nil {
			return reject("line %d is no JSON object", number)
		}
		if !mine { // of another table, whose lines stand between
			for j := range b.cols {
				if b.cols[j] != nil {
					b.cols[j] = b.cols[j][:b.n]
				}
			}
			return nil
		}
		if b.n++; b.n < libraryRows {
			return nil
		}
		err = errors.Join(ctx.Err(), emit(b))
		b.reset()
		return err
	})
	if err != nil || b.n == 0 {
		return err
	}
	return emit(b)
}

func (b *batch) jsonValue(v []byte, k kind) (int64, error) {
	switch v[0] {
	case '"':
		s, err := unquote(v)
		if err != nil {
			return schema.Null, err
		}
		return b.fromText([]byte(s), k), nil
	case 'n':
		if string(v) == "null" {
			return schema.Null, nil
		}
	case 't', 'f':
		if s := string(v); s == "true" {
			return b.fromInt(1, k, false), nil
		} else if s == "false" {
			return b.fromInt(0, k, false), nil
		}
	case '{', '[':
		if !json.Valid(v) {
			return schema.Null, errLine
		}
		return b.fromText(v, k), nil
	default:
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			return b.fromInt(n, k, false), nil
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			return b.fromInt(int64(n), k, true), nil
		}
		if f, err := strconv.ParseFloat(string(v), 64); err == nil {
			return b.fromFloat(f, k), nil
		}
	}
	return schema.Null, errLine
}
