package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

const (
	slugMax     = 100 // bytes; file systems allow 255 for "run=" and the slug
	slugHashLen = 8   // hexadecimal digits
	slugDefault = "run"
)

var slugPattern = regexp.MustCompile(`^[a-z][a-z0-9_.-]*$`)

// slugReserved are words that some reader takes for a value of another type
// when it guesses the type of a partition key: a date, a float, a truth value
// or null.
var slugReserved = map[string]bool{
	"epoch": true, "false": true, "inf": true, "infinity": true, "na": true,
	"nan": true, "none": true, "null": true, "true": true,
}

// ValidRun reports whether a text may be the run of a path.
func ValidRun(s string) bool {
	return len(s) <= slugMax && slugPattern.MatchString(s) && !slugReserved[s]
}

// RunSlug turns any text into the name of a run: lower case, starting with a
// letter so that no reader takes it for a number or a date, and free of
// characters that a path would have to encode. A text that is a valid run
// stays as it is. Where characters outside ASCII or the end of a long text are
// lost, a hash of the text keeps different texts apart.
func RunSlug(text string) string {
	if ValidRun(text) {
		return text
	}
	lower := strings.ToLower(text)
	b := make([]byte, 0, len(lower))
	lost, gap := false, false
	for i := 0; i < len(lower); i++ {
		switch c := lower[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '.':
			if gap && len(b) > 0 {
				b = append(b, '-')
			}
			gap = false
			b = append(b, c)
		default:
			lost = lost || c >= 0x80
			gap = true
		}
	}
	slug := strings.Trim(string(b), "-._")
	switch {
	case slug == "":
		slug = slugDefault
	case slug[0] < 'a' || slugReserved[slug]:
		slug = slugDefault + "-" + slug
	}
	if lost || len(slug) > slugMax {
		sum := sha256.Sum256([]byte(text))
		slug = slug[:min(len(slug), slugMax-slugHashLen-1)] + "-" + hex.EncodeToString(sum[:])[:slugHashLen]
	}
	return slug
}
