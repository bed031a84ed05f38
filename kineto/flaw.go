package kineto

import "tracelake/schema"

// flaw says what was wrong with a text and mended.
type flaw uint8

const (
	flawControl flaw = 1 << iota
	flawEscape
	flawUTF8
	flawWord
	flawQuote
)

var flawCodes = []struct {
	f       flaw
	code    schema.Code
	message string
}{
	{flawControl, schema.ControlCharacter, "control character in a string, kept"},
	{flawEscape, schema.InvalidEscape, "invalid escape in a string, text taken literally"},
	{flawUTF8, schema.InvalidUTF8, "bytes in a string are not UTF-8, replaced by U+FFFD"},
	{flawWord, schema.BareWord, "bare word where a value belongs"},
	{flawQuote, schema.UnescapedQuote, "unescaped quotes in a string, kept"},
}
