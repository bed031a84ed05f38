package compat

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"zombiezen.com/go/sqlite"
)

// value is a value of a row: nil, int64, float64, string or []byte.
type value any

// errDecode is how the reference takes a text that is not UTF-8.
var errDecode error = &Error{"Could not decode to UTF-8 column"}

func column(s *sqlite.Stmt, i int) (value, error) {
	switch s.ColumnType(i) {
	case sqlite.TypeInteger:
		return s.ColumnInt64(i), nil
	case sqlite.TypeFloat:
		return s.ColumnFloat(i), nil
	case sqlite.TypeText:
		t := s.ColumnText(i)
		if !utf8.ValidString(t) {
			return nil, errDecode
		}
		return t, nil
	case sqlite.TypeBlob:
		b := make([]byte, s.ColumnLen(i))
		s.ColumnBytes(i, b)
		return b, nil
	}
	return nil, nil
}

// typeError is a value of a type that has no integer.
type typeError struct{ msg string }

func (e *typeError) Error() string { return e.msg }

// toInt converts a value the way Python's int does.
func toInt(v value) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case float64:
		switch {
		case math.IsNaN(v):
			return 0, errors.New("cannot convert float NaN to integer")
		case math.IsInf(v, 0):
			return 0, errors.New("cannot convert float infinity to integer")
		case math.Abs(v) >= 1<<63:
			return 0, errors.New("integer beyond 64 bits")
		}
		return int64(v), nil
	case string:
		return parseInt(v, "'"+v+"'")
	case []byte:
		return parseInt(string(v), "b'"+string(v)+"'")
	}
	return 0, &typeError{"int() argument must be a string, a bytes-like object or a real number, not 'NoneType'"}
}

func parseInt(s, repr string) (int64, error) {
	digits := strings.TrimSpace(s)
	plain := strings.ReplaceAll(digits, "_", "")
	underscores := strings.HasPrefix(strings.TrimLeft(digits, "+-"), "_") || strings.HasSuffix(digits, "_") || strings.Contains(digits, "__")
	n, ok := new(big.Int).SetString(strings.TrimPrefix(plain, "+"), 10)
	if !ok || underscores || strings.HasPrefix(plain, "+-") {
		return 0, fmt.Errorf("invalid literal for int() with base 10: %s", repr)
	}
	if !n.IsInt64() {
		return 0, errors.New("integer beyond 64 bits")
	}
	return n.Int64(), nil
}

// truth is Python's truth of a value.
func truth(v value) bool {
	switch v := v.(type) {
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case []byte:
		return len(v) > 0
	}
	return false
}

// str is Python's text of a value.
func str(v value) string {
	switch v := v.(type) {
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if math.Trunc(v) == v && math.Abs(v) < 1e16 {
			s = strconv.FormatFloat(v, 'f', 1, 64)
		}
		return s
	case string:
		return v
	case []byte:
		return "b'" + string(v) + "'"
	}
	return "None"
}

// thousandth divides by 1000 the way Python does: correctly rounded.
func thousandth(n int64) float64 {
	if n > -1<<53 && n < 1<<53 {
		return float64(n) / 1000
	}
	f, _ := new(big.Rat).SetFrac64(n, 1000).Float64()
	return f
}
