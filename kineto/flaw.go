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

// appendFlaws adds a note for each flaw of what stands at offset.
func appendFlaws(notes []note, f flaw, offset int) []note {
	for _, c := range flawCodes {
		if f&c.f != 0 {
			notes = append(notes, note{code: c.code, offset: int64(offset), message: c.message})
		}
	}
	return notes
}

// flawsOf returns what is wrong with a value that is passed over.
func flawsOf(value []byte, offset int) []note {
	_, f := appendCompact(nil, value)
	return appendFlaws(nil, f, offset)
}

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
