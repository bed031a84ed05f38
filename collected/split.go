package collected

import (
	"bytes"
	"encoding/json"
)

// field is a member of a row: its key and the text of its value.
type field struct {
	key, value []byte
}

// splitRow cuts a line into the members of its object. Python writes NaN and
// infinities as bare words, which JSON does not know: they are taken as texts.
func splitRow(line []byte, out []field) ([]field, bool) {
	out = out[:0]
	if !json.Valid(line) {
		mended := quoteBareNumbers(line)
		if mended == nil || !json.Valid(mended) {
			return out, false
		}
		line = mended
	}
	s := bytes.TrimSpace(line)
	if len(s) == 0 || s[0] != '{' {
		return out, false
	}
	at := skipSpace(s, 1)
	for s[at] != '}' {
		end := skipValue(s, at)
		key := s[at+1 : end-1]
		at = skipSpace(s, skipSpace(s, end)+1) // behind the colon
		end = skipValue(s, at)
		out = append(out, field{key, s[at:end]})
		if at = skipSpace(s, end); s[at] == ',' {
			at = skipSpace(s, at+1)
		}
	}
	return out, true
}

func skipSpace(s []byte, at int) int {
	for s[at] == ' ' || s[at] == '\t' || s[at] == '\r' || s[at] == '\n' {
		at++
	}
	return at
}

// skipValue returns where the value that starts at a place ends. The text is
// valid JSON.
func skipValue(s []byte, at int) int {
	depth := 0
	for ; at < len(s); at++ {
		switch s[at] {
		case '"':
			at = skipString(s, at) - 1
			if depth == 0 {
				return at + 1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return at
			}
			if depth--; depth == 0 {
				return at + 1
			}
		case ',', ' ', '\t', '\r', '\n', ':':
			if depth == 0 {
				return at
			}
		}
	}
	return at
}

// skipString returns where the string that starts at a place ends, or the end
// of the text.
func skipString(s []byte, at int) int {
	for at++; at < len(s); at++ {
		switch s[at] {
		case '\\':
			at++
		case '"':
			return at + 1
		}
	}
	return len(s)
}

// quoteBareNumbers puts NaN, Infinity and -Infinity outside strings into
// quotes. It returns nil where there are none.
func quoteBareNumbers(line []byte) []byte {
	var out []byte
	from := 0
	for at := 0; at < len(line); at++ {
		if line[at] == '"' {
			at = skipString(line, at) - 1
			continue
		}
		for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
			if bytes.HasPrefix(line[at:], []byte(word)) {
				out = append(out, line[from:at]...)
				out = append(append(append(out, '"'), word...), '"')
				at += len(word) - 1
				from = at + 1
				break
			}
		}
	}
	if out == nil {
		return nil
	}
	return append(out, line[from:]...)
}
