package redact

import (
	"regexp"
	"sync"
)

// pattern returns a regular expression that is compiled when it is first used:
// every start of the program would pay for the dozens of this package.
func pattern(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
