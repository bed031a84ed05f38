package kineto

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
)

// Digest returns the SHA-256 of the text of a trace, as Result.SHA256 gives
// it, without decoding anything.
func Digest(src io.Reader) (string, error) {
	t, err := openText(src)
	if err != nil {
		return "", err
	}
	defer t.Close()
	h := sha256.New()
	if _, err := io.CopyBuffer(h, t, make([]byte, bufSize)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
