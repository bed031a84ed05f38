package convert

import (
	"bytes"
	"io"
	"strconv"

	"tracelake/internal/digest"
	"tracelake/internal/regular"
	"tracelake/kineto"
	"tracelake/schema"
)

// tailBase looks for the base time at the end of a plain file, where some
// versions of PyTorch write it. It saves reading the file twice; the reader
// checks it.
func tailBase(path string) int64 {
	f, err := regular.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return 0
	}
	b := make([]byte, min(st.Size(), tailSize))
	if _, err := f.ReadAt(b, st.Size()-int64(len(b))); err != nil && err != io.EOF {
		return 0
	}
	return baseIn(b)
}

// baseIn finds the base time in the last bytes of a file.
func baseIn(b []byte) int64 {
	key := []byte(`baseTimeNanoseconds"`) // there are too many quotes to look for the one in front
	at := 0
	for from := 0; ; from = at { // much faster than LastIndex
		i := bytes.Index(b[from:], key)
		if i < 0 {
			break
		}
		at = from + i + len(key)
	}
	if i := at - len(key) - 1; i < 0 || b[i] != '"' {
		return 0
	}
	b = bytes.TrimLeft(b[at:], " \t\r\n:")
	n := 0
	for n < len(b) && b[n] >= '0' && b[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(string(b[:n]), 10, 64)
	if err != nil {
		return 0
	}
	return v
}

// tailSize is how much of the end of a file is searched.
const tailSize = 64 << 10

// fileSum returns the digest of a file as stored.
func fileSum(path string) (string, error) {
	f, err := regular.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := digest.New()
	_, err = io.Copy(h, f)
	return digest.Text(h), err
}

// rankInfo is a rank and where it comes from.
type rankInfo struct {
	value  schema.Opt[int64]
	source string
	inName schema.Opt[int64]
}

// rankOf takes the rank from the content, then from the file name.
func (c *importer) rankOf(path string, res *loaded) rankInfo {
	r := rankInfo{inName: kineto.RankInName(path)}
	switch {
	case res.header.Rank.OK:
		r.value, r.source = res.header.Rank, "content"
	case r.inName.OK:
		r.value, r.source = r.inName, "file_name"
	}
	return r
}
