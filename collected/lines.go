package collected

import (
	"bufio"
	"errors"
	"io"
)

// lines reads lines of bounded length.
type lines struct {
	in        *bufio.Reader
	buf       []byte
	n         int64 // number of the line, from 1
	offset    int64 // where the line starts
	following int64 // where the next one starts
	long      bool  // the line is longer than allowed; only its start was kept
	ended     bool  // by a line feed and not by the end of the file
	err       error // of reading; nil at the end
}

// next returns the next line without its line feed, valid until the next call,
// and false behind the last one.
func (l *lines) next(limit int) ([]byte, bool) {
	l.buf, l.long, l.ended = l.buf[:0], false, false
	l.offset = l.following
	for {
		part, err := l.in.ReadSlice('\n')
		l.following += int64(len(part))
		if len(l.buf)+len(part) > limit+1 {
			l.long = true
		} else {
			l.buf = append(l.buf, part...)
		}
		switch {
		case err == nil:
			l.ended = true
			l.n++
			if !l.long {
				l.buf = l.buf[:len(l.buf)-1]
			}
			return l.buf, true
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF):
			if l.following == l.offset {
				return nil, false
			}
			l.n++
			return l.buf, true
		default:
			l.err = err
			return nil, false
		}
	}
}
