package collected

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"tracelake/schema"
)

// exact is the largest integer up to which a float64 holds every integer.
const exact = 1 << 53

// decode returns the value of a column as a Vector stores it, and its text for
// a string. Null is no value; ok is false where the value has another type.
func decode(c *schema.Column, raw []byte) (v int64, text string, null, ok bool) {
	if raw[0] == 'n' {
		return 0, "", true, true
	}
	switch c.Type {
	case schema.Int64:
		v, ok = decodeInt(raw)
	case schema.Float64:
		var f float64
		f, ok = decodeFloat(raw)
		v = int64(math.Float64bits(f))
	case schema.Bool:
		switch raw[0] {
		case 't':
			return 1, "", false, true
		case 'f':
			return 0, "", false, true
		}
	case schema.String:
		text, ok = decodeText(c, raw)
	}
	return v, text, false, ok
}

// decodeInt reads an integer; one with a fraction or exponent counts where it
// is whole and a float64 holds it exactly.
func decodeInt(raw []byte) (int64, bool) {
	v, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return v, v != schema.Null
	}
	if raw[0] == '"' {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return 0, false
	}
	return int64(f), true
}

func decodeFloat(raw []byte) (float64, bool) {
	switch string(raw) {
	case `"NaN"`:
		return math.NaN(), true
	case `"Infinity"`:
		return math.Inf(1), true
	case `"-Infinity"`:
		return math.Inf(-1), true
	}
	if raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	return f, err == nil
}

// decodeText reads a string. A column that holds JSON may also be given the
// value itself.
func decodeText(c *schema.Column, raw []byte) (string, bool) {
	if raw[0] != '"' {
		if !strings.HasSuffix(c.Name, "_json") {
			return "", false
		}
		var b bytes.Buffer
		if json.Compact(&b, raw) != nil {
			return "", false
		}
		return b.String(), true
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return string(inner), true
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	return s, true
}
