package compat

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// exception is an error of Python. Its text inside an Error is Python's repr.
type exception struct{ kind, msg string }

func (e *exception) Error() string { return e.kind + "(" + repr(e.msg) + ")" }

// isValueOrType tells the exceptions that an optional conversion forgives.
func (e *exception) isValueOrType() bool { return e.kind == "ValueError" || e.kind == "TypeError" }

// toInt is int(value): the integer part of a number, or the integer of a text.
func toInt(v *value) (value, *exception) {
	switch v.kind {
	case integer:
		return *v, nil
	case boolean:
		if v.b {
			return value{kind: integer, i: 1}, nil
		}
		return value{kind: integer}, nil
	case float:
		switch {
		case math.IsNaN(v.f):
			return value{}, &exception{"ValueError", "cannot convert float NaN to integer"}
		case math.IsInf(v.f, 0):
			return value{}, &exception{"OverflowError", "cannot convert float infinity to integer"}
		}
		n, _ := big.NewFloat(v.f).Int(nil)
		return bigValue(n), nil
	case text:
		s, ok := digitsOf(ascii(v.s))
		if !ok {
			return value{}, &exception{"ValueError", "invalid literal for int() with base 10: " + repr(v.s)}
		}
		n, ok := parseInt(s)
		if !ok {
			return value{}, &exception{"ValueError", "Exceeds the limit (4300 digits) for integer string conversion"}
		}
		return n, nil
	}
	return value{}, &exception{"TypeError", "int() argument must be a string, a bytes-like object or a real number, not '" + v.typeName() + "'"}
}

// toOptionalInt is the reference's reading of integers that may be missing:
// null, booleans and whatever is no integer are none.
func toOptionalInt(v *value) (value, bool, *exception) {
	if v == nil || v.kind == null || v.kind == boolean {
		return value{}, false, nil
	}
	n, err := toInt(v)
	if err != nil && err.isValueOrType() {
		return value{}, false, nil
	}
	return n, err == nil, err
}

// toFloat is float(value).
func toFloat(v *value) (float64, *exception) {
	switch v.kind {
	case float:
		return v.f, nil
	case boolean:
		if v.b {
			return 1, nil
		}
		return 0, nil
	case integer:
		if v.big == nil {
			return float64(v.i), nil
		}
		f, _ := strconv.ParseFloat(v.big.String(), 64)
		if math.IsInf(f, 0) {
			return 0, &exception{"OverflowError", "int too large to convert to float"}
		}
		return f, nil
	case text:
		if f, ok := floatOf(ascii(v.s)); ok {
			return f, nil
		}
		return 0, &exception{"ValueError", "could not convert string to float: " + repr(v.s)}
	}
	return 0, &exception{"TypeError", "float() argument must be a string or a real number, not '" + v.typeName() + "'"}
}

// ascii strips white space and replaces the decimal digits of other scripts,
// as Python does before it reads a number.
func ascii(s string) string {
	space := func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }
	s = strings.TrimFunc(s, space)
	return strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf || !unicode.Is(unicode.Nd, r) {
			return r
		}
		for _, x := range unicode.Nd.R16 {
			if uint32(x.Lo) <= uint32(r) && uint32(r) <= uint32(x.Hi) {
				return '0' + (r-rune(x.Lo))%10
			}
		}
		for _, x := range unicode.Nd.R32 {
			if x.Lo <= uint32(r) && uint32(r) <= x.Hi {
				return '0' + (r-rune(x.Lo))%10
			}
		}
		return r
	}, s)
}

// digitsOf checks an integer with an optional sign and single underscores
// between digits, and removes the underscores.
func digitsOf(s string) (string, bool) {
	body := strings.TrimLeft(s, "+-")
	if len(s)-len(body) > 1 || digitRun(body) != len(body) || body == "" {
		return "", false
	}
	return strings.ReplaceAll(s, "_", ""), true
}

// digitRun returns the length of the digits that s starts with, single
// underscores between digits included.
func digitRun(s string) (n int) {
	for i := 0; i < len(s); i++ {
		switch {
		case '0' <= s[i] && s[i] <= '9':
			n = i + 1
		case s[i] == '_' && i > 0 && s[i-1] != '_':
		default:
			return n
		}
	}
	return n
}

// floatOf reads a number in Python's grammar.
func floatOf(s string) (float64, bool) {
	body := strings.TrimLeft(s, "+-")
	if len(s)-len(body) > 1 {
		return 0, false
	}
	switch strings.ToLower(body) {
	case "inf", "infinity":
		if s[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	case "nan":
		return math.NaN(), true
	}
	whole := digitRun(body)
	rest := body[whole:]
	fraction := 0
	if strings.HasPrefix(rest, ".") {
		fraction = digitRun(rest[1:])
		rest = rest[1+fraction:]
	}
	if whole+fraction == 0 {
		return 0, false
	}
	if rest != "" {
		exponent := rest[1:]
		if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
			exponent = exponent[1:]
		}
		if rest[0]|0x20 != 'e' || exponent == "" || digitRun(exponent) != len(exponent) {
			return 0, false
		}
	}
	// Out of range is an infinity and no error.
	f, _ := strconv.ParseFloat(strings.ReplaceAll(s, "_", ""), 64)
	return f, true
}
