package schema

// Type is the type of a column. Integers are always 64-bit signed and times
// are integer nanoseconds, because these are what every reader agrees on.
type Type uint8

// Column types.
const (
	Int64     Type = iota // 64-bit signed integer
	Float64               // IEEE 754 double
	String                // UTF-8 text, dictionary-encoded
	Bool                  // true or false
	Intervals             // list<struct<offset_ns int64, dur_ns int64>>
)

// String returns the SQL-like name used in the data dictionary.
func (t Type) String() string {
	switch t {
	case Int64:
		return "int64"
	case Float64:
		return "float64"
	case String:
		return "string"
	case Bool:
		return "bool"
	case Intervals:
		return "list<struct<offset_ns int64, dur_ns int64>>"
	}
	return "invalid"
}

// Column declares one column of a table.
type Column struct {
	Name     string
	Type     Type
	Nullable bool
	Unit     string // "ns", "bytes", … or ""
	Since    int    // schema version that introduced the column
	Doc      string // one sentence; what null means where it may be null
}

// Table declares one table of a dataset.
type Table struct {
	Name    string
	Row     string // what one row is
	Order   string // the order of rows within a file
	Doc     string
	Columns []Column
}

// Col returns the position of the named column, or -1.
func (t *Table) Col(name string) int {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// TraceIDColumn is the column that every table has; its value is the same for
// all rows of a file.
const TraceIDColumn = "trace_id"

// TraceIDLen is the length of every trace ID in bytes (hexadecimal digits).
const TraceIDLen = 16

// Interval is a busy interval of an activity, relative to the activity's start.
type Interval struct {
	OffsetNS int64 `json:"offset_ns"`
	DurNS    int64 `json:"dur_ns"`
}
