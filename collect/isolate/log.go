package isolate

import (
	"bytes"
	"fmt"
	"io"
	"os"
)

// boundedLog keeps the first and the last bytes of what is written to it. The
// head is on disk at once; the tail follows when the log is closed.
type boundedLog struct {
	f          *os.File
	head, tail int64
	ring       []byte
	at         int // where the ring goes on
	full       bool
	written    int64
	err        error
}

func createLog(path string, head, tail int64) (*boundedLog, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &boundedLog{f: f, head: head, tail: tail}, nil
}

// Write never fails, so that a full disk does not block the worker; the first
// error is returned by close.
func (l *boundedLog) Write(p []byte) (int, error) {
	n := len(p)
	if room := l.head - l.written; room > 0 {
		part := p[:min(int64(len(p)), room)]
		l.note(part)
		p = p[len(part):]
	}
	l.written += int64(n)
	for len(p) > 0 && l.tail > 0 {
		if l.ring == nil {
			l.ring = make([]byte, l.tail)
		}
		k := copy(l.ring[l.at:], p)
		p, l.at = p[k:], l.at+k
		if l.at == len(l.ring) {
			l.at, l.full = 0, true
		}
	}
	return n, nil
}

func (l *boundedLog) note(p []byte) {
	if _, err := l.f.Write(p); err != nil && l.err == nil {
		l.err = err
	}
}

// rest is the tail in order.
func (l *boundedLog) rest() []byte {
	if !l.full {
		return l.ring[:l.at]
	}
	return append(bytes.Clone(l.ring[l.at:]), l.ring[:l.at]...)
}

// close appends the tail and says how much is missing before it.
func (l *boundedLog) close() (cut int64, err error) {
	if l.written > l.head {
		rest := l.rest()
		cut = l.written - l.head - int64(len(rest))
		if cut > 0 {
			l.note(fmt.Appendf(nil, "\n[… %d bytes of output cut here …]\n", cut))
		}
		l.note(rest)
	}
	if err := l.f.Close(); err != nil && l.err == nil {
		l.err = err
	}
	return cut, l.err
}

// lastLine returns the last line of a log file that says something.
func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	buf := make([]byte, min(end, 8<<10))
	if _, err := f.ReadAt(buf, end-int64(len(buf))); err != nil {
		return ""
	}
	lines := bytes.Split(buf, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if s := bytes.TrimSpace(lines[i]); len(s) > 0 {
			return clip(string(bytes.ToValidUTF8(s, []byte("?"))), 500)
		}
	}
	return ""
}
