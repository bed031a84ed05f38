package query

import (
	"errors"
	"io"
	"strings"
)

// ErrNoDuckDB means that the program was built without the engine.
var ErrNoDuckDB = errors.New("this build has no DuckDB (built without cgo or with the tag noduckdb); use the full build, or read the Parquet files with a DuckDB of your own")

// ErrForbidden means that a statement would do more than read the dataset.
// Typically it is a COPY, ATTACH or INSTALL; redirect the output instead.
var ErrForbidden = errors.New("only statements that read are allowed")

// ErrEmpty means that there is no statement in the text.
var ErrEmpty = errors.New("empty query")

// ErrTempDir means that nothing can be put into Options.TempDir.
var ErrTempDir = errors.New("no directory can be made there")

// Options bound what a database may use.
type Options struct {
	Memory  string // limit such as 2GiB; "" leaves DuckDB's default of 80 % of the machine
	Threads int    // 0 means one per core
	Lazy    bool   // views and macros come into being when a statement names them, and are in no list before: half of what opening takes
	TempDir string // for what does not fit into memory; "" is the system's
	Spill   string // how much of the disk that may take, as in "10GB"; "" is half of what is free
}

// Column is a column of a result.
type Column struct {
	Name string
	Type string // as DuckDB calls it
}

// Rows streams a result. It must be closed.
type Rows interface {
	Columns() []Column
	// Next fills in one value per column: nil, bool, int64, uint64, float64,
	// string, Number, []any or Object. It returns io.EOF behind the last row.
	Next(dest []any) error
	Close() error
}

// Number is an exact number that int64 and float64 cannot hold.
type Number string

// Object is a value with named fields, in the order of their names.
type Object []Field

// Field is a field of an Object.
type Field struct {
	Name  string
	Value any
}

// First limits rows to the first n of them. More tells, once they were read,
// whether there were others.
type First struct {
	Rows
	Left int
	More bool
}

// Next returns io.EOF behind the last row that is wanted.
func (f *First) Next(dest []any) error {
	err := f.Rows.Next(dest)
	if err == nil && f.Left == 0 {
		f.More = true
		return io.EOF
	}
	f.Left--
	return err
}

// Identifier makes a name of SQL from any text.
func Identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
