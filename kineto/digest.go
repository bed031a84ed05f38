package kineto

import (
	"io"

	"tracelake/internal/digest"
	"tracelake/internal/inflate"
)

// Digest returns the digest of the text of a trace, as Result.Digest gives
// it, without decoding anything.
func Digest(src io.Reader) (string, error) {
	t, err := openText(src, inflate.Options{})
	if err != nil {
		return "", err
	}
	defer t.Close()
	h := digest.New()
	if _, err := io.CopyBuffer(h, t, make([]byte, bufSize)); err != nil {
		return "", err
	}
	return digest.Text(h), nil
}
