package query

import "strings"

// split cuts a script at the semicolons that end statements. Statements that
// hold nothing but comments are left out.
func split(script string) []string {
	out, rest, code := cut(script)
	if code {
		out = append(out, rest)
	}
	return out
}

// Statements returns the statements of a script that a semicolon ends, without
// it, and the text behind the last semicolon. Semicolons in quoted text and
// comments end nothing, and statements that hold nothing but comments are left
// out.
func Statements(script string) (ended []string, rest string) {
	ended, rest, _ = cut(script)
	return ended, rest
}

// cut is Statements, and tells whether the rest holds more than comments.
func cut(script string) (ended []string, rest string, code bool) {
	start := 0
	for i := 0; i < len(script); {
		n := skip(script[i:])
		switch c := script[i]; {
		case n > 0 && (strings.HasPrefix(script[i:], "--") || strings.HasPrefix(script[i:], "/*")):
		case n > 0:
			code = true
		case c == ';':
			if code {
				ended = append(ended, script[start:i])
			}
			start, code, n = i+1, false, 1
		default:
			code = code || !strings.ContainsRune(" \t\r\n\f\v", rune(c))
			n = 1
		}
		i += n
	}
	return ended, script[start:], code
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
