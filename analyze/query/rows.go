//go:build cgo && !noduckdb

package query

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/duckdb/duckdb-go/v2"
)

// rows turns the values of the driver into the few kinds that printers know.
type rows struct {
	r    driver.Rows
	stmt *duckdb.Stmt
	cols []Column
	raw  []driver.Value
}

func newRows(r driver.Rows, stmt *duckdb.Stmt) *rows {
	out := &rows{r: r, stmt: stmt, raw: make([]driver.Value, len(r.Columns()))}
	types, _ := r.(driver.RowsColumnTypeDatabaseTypeName)
	for i, name := range r.Columns() {
		c := Column{Name: name}
		if types != nil {
			c.Type = types.ColumnTypeDatabaseTypeName(i)
		}
		out.cols = append(out.cols, c)
	}
	return out
}

func (r *rows) Columns() []Column { return r.cols }

func (r *rows) Close() error { return errors.Join(r.r.Close(), r.stmt.Close()) }

func (r *rows) Next(dest []any) error {
	if err := r.r.Next(r.raw); err != nil {
		return err
	}
	for i, v := range r.raw {
		dest[i] = plain(v, r.cols[i].Type)
	}
	return nil
}

// plain converts one value. The type decides how a time is written.
func plain(v any, typ string) any {
	switch v := v.(type) {
	case nil, bool, int64, uint64, float64, string:
		return v
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return uint64(v)
	case uint16:
		return uint64(v)
	case uint32:
		return uint64(v)
	case float32:
		return float64(v)
	case *big.Int:
		return Number(v.String())
	case duckdb.Decimal:
		return Number(v.String())
	case time.Time:
		return timeText(v, typ)
	case duckdb.Interval:
		return fmt.Sprintf("%d months %d days %d us", v.Months, v.Days, v.Micros)
	case duckdb.UUID:
		return v.String()
	case []byte:
		if typ == "UUID" && len(v) == 16 {
			return fmt.Sprintf("%x-%x-%x-%x-%x", v[:4], v[4:6], v[6:8], v[8:10], v[10:])
		}
		return fmt.Sprintf("%x", v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i], strings.TrimSuffix(typ, "[]"))
		}
		return out
	case map[string]any:
		var out Object
		for name, x := range v {
			out = append(out, Field{name, plain(x, "")})
		}
		return sorted(out)
	case duckdb.Map:
		var out Object
		for name, x := range v {
			out = append(out, Field{fmt.Sprint(plain(name, "")), plain(x, "")})
		}
		return sorted(out)
	case duckdb.OrderedMap:
		out := Object{}
		values := v.Values()
		for i, name := range v.Keys() {
			out = append(out, Field{fmt.Sprint(plain(name, "")), plain(values[i], "")})
		}
		return out
	case duckdb.Union:
		return plain(v.Value, "")
	}
	return fmt.Sprint(v)
}

func sorted(o Object) Object {
	slices.SortFunc(o, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return o
}

func timeText(t time.Time, typ string) string {
	switch {
	case typ == "DATE":
		return t.Format(time.DateOnly)
	case strings.HasPrefix(typ, "TIMETZ") || typ == "TIME WITH TIME ZONE":
		return t.Format("15:04:05.999999Z07:00")
	case typ == "TIME":
		return t.Format("15:04:05.999999")
	case typ == "TIMESTAMPTZ" || typ == "TIMESTAMP WITH TIME ZONE":
		return t.UTC().Format("2006-01-02T15:04:05.999999999Z07:00")
	}
	return t.Format("2006-01-02T15:04:05.999999999")
}
