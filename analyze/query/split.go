//go:build cgo && !noduckdb

package query

import "strings"

// split cuts a script at the semicolons that end statements. Statements that
// hold nothing but comments are left out.
func split(script string) []string {
	var out []string
	start, code := 0, false
	flush := func(end int) {
		if code {
			out = append(out, script[start:end])
		}
		start, code = end+1, false
	}
	for i := 0; i < len(script); {
		n := skip(script[i:])
		switch c := script[i]; {
		case n > 0 && (strings.HasPrefix(script[i:], "--") || strings.HasPrefix(script[i:], "/*")):
		case n > 0:
			code = true
		case c == ';':
			flush(i)
			n = 1
		default:
			code = code || !strings.ContainsRune(" \t\r\n\f\v", rune(c))
			n = 1
		}
		i += n
	}
	flush(len(script))
	return out
}

// skip returns the length of the comment or quoted text that s starts with, or
// 0. What does not end reaches to the end of s.
func skip(s string) int {
	switch {
	case strings.HasPrefix(s, "--"):
		return until(s, 2, "\n")
	case strings.HasPrefix(s, "/*"):
		return until(s, 2, "*/")
	case s[0] == '\'' || s[0] == '"':
		// A doubled quote reads as the end of one text and the start of the next.
		return until(s, 1, s[:1])
	case (s[0] == 'e' || s[0] == 'E') && len(s) > 1 && s[1] == '\'':
		for i := 2; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '\'':
				return i + 1
			}
		}
		return len(s)
	case isWord(s[0]):
		// A whole word, so that an e at its end does not start an escape text.
		n := 1
		for n < len(s) && (isWord(s[n]) || s[n] == '$') {
			n++
		}
		return n
	case s[0] == '$':
		n := 1
		for n < len(s) && isWord(s[n]) {
			n++
		}
		if n < len(s) && s[n] == '$' && (n == 1 || s[1] > '9') {
			return until(s, n+1, s[:n+1])
		}
	}
	return 0
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

func until(s string, from int, end string) int {
	if i := strings.Index(s[from:], end); i >= 0 {
		return from + i + len(end)
	}
	return len(s)
}
