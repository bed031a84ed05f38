package query

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Format is a way to print a result.
type Format string

// Formats.
const (
	Table Format = "table" // aligned columns for people
	CSV   Format = "csv"   // RFC 4180 with a header line; null is an empty field
	JSON  Format = "json"  // one JSON object per line and row

	Parquet Format = "parquet" // a Parquet file
)

// Formats lists what Print knows.
var Formats = []Format{Table, CSV, JSON, Parquet}

// ParseFormat returns the format with the given name.
func ParseFormat(name string) (Format, error) {
	for _, f := range Formats {
		if string(f) == name {
			return f, nil
		}
	}
	return "", fmt.Errorf("unknown format %q: want table, csv, json or parquet", name)
}

// Print writes all rows and closes them. CSV and JSON are written row by row;
// a table is held in memory, because the widest value sets its columns.
func Print(w io.Writer, f Format, r Rows) (err error) {
	defer func() { err = errors.Join(err, r.Close()) }()
	out := bufio.NewWriterSize(w, 64<<10)
	switch f {
	case CSV:
		err = printCSV(out, r)
	case JSON:
		err = printJSON(out, r)
	case Parquet:
		err = printParquet(out, r)
	default:
		err = printTable(out, r)
	}
	return errors.Join(err, out.Flush())
}

// each calls do with every row; the slice is reused.
func each(r Rows, do func([]any) error) error {
	values := make([]any, len(r.Columns()))
	for {
		err := r.Next(values)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = do(values)
		}
		if err != nil {
			return err
		}
	}
}

func printCSV(w io.Writer, r Rows) error {
	out := csv.NewWriter(w)
	record := make([]string, 0, len(r.Columns()))
	for _, c := range r.Columns() {
		record = append(record, c.Name)
	}
	if err := out.Write(record); err != nil {
		return err
	}
	err := each(r, func(values []any) error {
		record = record[:0]
		for _, v := range values {
			if v == nil {
				record = append(record, "")
			} else {
				record = append(record, text(v))
			}
		}
		if len(record) == 1 && record[0] == "" {
			// An empty line would not count as a record.
			out.Flush()
			_, err := io.WriteString(w, "\"\"\n")
			return err
		}
		return out.Write(record)
	})
	out.Flush()
	return errors.Join(err, out.Error())
}

func printJSON(w io.Writer, r Rows) error {
	var names [][]byte
	for _, c := range uniqueNames(r.Columns()) {
		names = append(names, AppendJSON(nil, c))
	}
	var line []byte
	return each(r, func(values []any) error {
		line = append(line[:0], '{')
		for i, v := range values {
			if i > 0 {
				line = append(line, ',')
			}
			line = append(append(line, names[i]...), ':')
			line = AppendJSON(line, v)
		}
		line = append(line, '}', '\n')
		_, err := w.Write(line)
		return err
	})
}

// uniqueNames tells apart columns of the same name, since a JSON object can
// hold only one of them.
func uniqueNames(cols []Column) []string {
	seen := map[string]bool{}
	var out []string
	for _, c := range cols {
		name := c.Name
		for n := 2; seen[name]; n++ {
			name = c.Name + "_" + strconv.Itoa(n)
		}
		seen[name] = true
		out = append(out, name)
	}
	return out
}

// text writes a value for people and CSV.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case string:
		return v
	case float64:
		if math.Abs(v) >= 1e-4 && math.Abs(v) < 1e15 || v == 0 {
			return strconv.FormatFloat(v, 'f', -1, 64)
		}
		return strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+")
	case []any, Object:
		return string(AppendJSON(nil, v))
	}
	return fmt.Sprint(v)
}
