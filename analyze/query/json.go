package query

import (
	"encoding/json"
	"math"
	"strconv"
)

// AppendJSON appends a value of a row as the format JSON prints it. Integers keep all their digits; NaN and
// the infinities, which JSON does not have, become strings.
func AppendJSON(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(b, "null"...)
	case bool:
		return strconv.AppendBool(b, v)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case uint64:
		return strconv.AppendUint(b, v, 10)
	case Number:
		return append(b, v...)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return strconv.AppendQuote(b, text(v))
		}
		data, _ := json.Marshal(v) // finite: no error
		return append(b, data...)
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = AppendJSON(b, x)
		}
		return append(b, ']')
	case Object:
		b = append(b, '{')
		for i, f := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(AppendJSON(b, f.Name), ':')
			b = AppendJSON(b, f.Value)
		}
		return append(b, '}')
	}
	data, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, data...)
}
