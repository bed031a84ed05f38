package schema

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// ValidText returns a text as UTF-8, with each byte that is none written as
// \xff. Names of files may be any bytes; columns of text may not.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		if r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)) {
			fmt.Fprintf(&b, `\x%02x`, s[i])
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}
