package compat

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"unicode/utf8"

	"github.com/klauspost/compress/flate"

	"tracelake/internal/regular"
)

// MaxText is the largest text in bytes that Load reads after decompression.
const MaxText = 4 << 30

// readText returns the text of a plain or gzipped file, told apart by content.
func readText(path string) ([]byte, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return decode(f)
}

func decode(src io.Reader) ([]byte, error) {
	in := bufio.NewReaderSize(src, 1<<18)
	var text []byte
	var err error
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		text, err = gunzip(in)
	} else {
		text, err = io.ReadAll(io.LimitReader(in, MaxText+1))
	}
	if err != nil {
		return nil, err
	}
	if len(text) > MaxText {
		return nil, refuse("more than %d bytes of text", int64(MaxText))
	}
	if !utf8.Valid(text) {
		return nil, corrupt("byte %d is not UTF-8", invalidAt(text))
	}
	return text, nil
}

func invalidAt(text []byte) (at int) {
	for at < len(text) {
		r, n := utf8.DecodeRune(text[at:])
		if r == utf8.RuneError && n == 1 {
			break
		}
		at += n
	}
	return at
}

// gunzip reads every member of a gzip file. Zero bytes may follow a member;
// anything else must be another member.
func gunzip(in *bufio.Reader) ([]byte, error) {
	var out bytes.Buffer
	for {
		start := out.Len()
		if err := member(in, &out); err != nil {
			return nil, err
		}
		var trailer [8]byte
		if _, err := io.ReadFull(in, trailer[:]); err != nil {
			return nil, gzipError(err)
		}
		data := out.Bytes()[start:]
		if got, want := crc32.ChecksumIEEE(data), binary.LittleEndian.Uint32(trailer[:]); got != want {
			return nil, corrupt("CRC check failed %#x != %#x", want, got)
		}
		if binary.LittleEndian.Uint32(trailer[4:]) != uint32(len(data)) {
			return nil, corrupt("Incorrect length of data produced")
		}
		c := byte(0)
		var err error
		for c == 0 && err == nil {
			c, err = in.ReadByte()
		}
		if err == io.EOF {
			return out.Bytes(), nil
		}
		if err != nil {
			return nil, err
		}
		if err := in.UnreadByte(); err != nil {
			return nil, err
		}
	}
}

// member reads the header and the data of one member, but not its trailer.
func member(in *bufio.Reader, out *bytes.Buffer) error {
	if err := header(in); err != nil {
		return err
	}
	z := flate.NewReader(in)
	defer z.Close()
	n, err := io.Copy(out, io.LimitReader(z, MaxText+1-int64(out.Len())))
	if n > MaxText || out.Len() > MaxText {
		return refuse("more than %d bytes of text", int64(MaxText))
	}
	return gzipError(err)
}

// header skips the header of a member. A checksum of the header is not looked
// at.
func header(in *bufio.Reader) error {
	var h [10]byte
	if _, err := io.ReadFull(in, h[:2]); err != nil {
		return gzipError(err)
	}
	if h[0] != 0x1f || h[1] != 0x8b {
		return corrupt("Not a gzipped file (%q)", h[:2])
	}
	if _, err := io.ReadFull(in, h[2:]); err != nil {
		return gzipError(err)
	}
	if h[2] != 8 {
		return corrupt("Unknown compression method")
	}
	flags := h[3]
	if flags&4 != 0 { // extra field
		if _, err := io.ReadFull(in, h[:2]); err != nil {
			return gzipError(err)
		}
		if _, err := in.Discard(int(binary.LittleEndian.Uint16(h[:2]))); err != nil {
			return gzipError(err)
		}
	}
	for _, text := range []byte{8, 16} { // file name, comment
		for c := byte(1); flags&text != 0 && c != 0; {
			var err error
			if c, err = in.ReadByte(); err != nil {
				return gzipError(err)
			}
		}
	}
	if flags&2 != 0 {
		if _, err := in.Discard(2); err != nil {
			return gzipError(err)
		}
	}
	return nil
}

func gzipError(err error) error {
	var damaged flate.CorruptInputError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return corrupt("Compressed file ended before the end-of-stream marker was reached")
	case errors.As(err, &damaged):
		return corrupt("%v", err)
	}
	return err
}
