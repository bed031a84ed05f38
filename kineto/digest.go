package kineto

import (
	"io"

	"tracelake/internal/digest"
)

// Digest returns the digest of the text of a trace, as Result.Digest gives
// it, without decoding anything. Workers, Gate and Share count.
func Digest(src io.Reader, o Options) (string, error) {
	o.fill()
	t, err := openText(src, o.gzip())
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
