package kineto

import (
	"fmt"
	"os"
	"sync"
)

// DefaultSpillAfter is how many bytes of packed values a table keeps in memory
// before they go to a file.
const DefaultSpillAfter = 8 << 20

const (
	// spillBlock is how many bytes of a table go to the file at a time.
	spillBlock = 1 << 20
	// readBlock is how many bytes of a column come back at a time.
	readBlock = 64 << 10
)

// spill is a file for packed values that need not stay in memory, the columns
// of a block one after another. Where it cannot be written, they stay.
type spill struct {
	open  func() (*os.File, error)
	after int // bytes of a table
	f     *os.File
	end   int64
	full  bool // a write failed: nothing more goes there
	buf   []byte

	mu  sync.Mutex
	err error // the first failure to read
}

func newSpill(o *Options) *spill {
	if o.Spill == nil {
		return nil
	}
	return &spill{open: o.Spill, after: o.SpillAfter}
}

// unload moves what a table holds in memory to the file.
func (r *Retained) unload() {
	s := r.spill
	// Little stays where it is; then a block goes at a time.
	if s == nil || s.full || r.held < min(spillBlock, s.after) || r.first == 0 && r.held < s.after {
		return
	}
	if s.f == nil {
		f, err := s.open()
		if err != nil {
			s.full = true
			return
		}
		s.f = f
	}
	end := s.end
	for c := range r.segs {
		s.buf = s.buf[:0]
		for i := range r.segs[c][r.first:] {
			s.buf = append(s.buf, r.segs[c][r.first+i].data...)
		}
		if _, err := s.f.WriteAt(s.buf, end); err != nil {
			s.full = true
			return
		}
		end += int64(len(s.buf))
	}
	for c := range r.segs {
		for i := range r.segs[c][r.first:] {
			g := &r.segs[c][r.first+i]
			g.at, g.data = s.end, nil
			s.end += int64(g.size())
		}
	}
	r.first, r.held = len(r.segs[0]), 0
}

// load unpacks the values of a column that are in the file.
func (r *Retained) load(out []int64, segs []segment) (rows int) {
	var buf []byte
	for i := 0; i < len(segs); {
		// Segments of one block stand side by side.
		at, n, k := segs[i].at, 0, i
		for ; k < len(segs) && (k == i || segs[k].at == at+int64(n) && n+segs[k].size() <= readBlock); k++ {
			n += segs[k].size()
		}
		if cap(buf) < n {
			buf = make([]byte, max(n, readBlock))
		}
		buf = buf[:n]
		if n > 0 {
			if _, err := r.spill.f.ReadAt(buf, at); err != nil {
				r.spill.failed(err)
				clear(buf)
			}
		}
		for from := 0; i < k; i++ {
			rows += segs[i].unpack(out[rows:], buf[from:])
			from += segs[i].size()
		}
	}
	return rows
}

func (s *spill) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf("rows that were put aside cannot be read: %w", err)
	}
}

// Err returns why values that Values returned are not those of the trace: the
// file that they were put aside in could not be read.
func (r *Retained) Err() error {
	if r.spill == nil {
		return nil
	}
	r.spill.mu.Lock()
	defer r.spill.mu.Unlock()
	return r.spill.err
}

// DropBuffers frees the memory that readers keep for the next trace. It pays
// where much else is about to be needed.
func DropBuffers() {
	batches.Drop()
	texts.Drop()
	for t := range memories {
		memories[t].Drop()
	}
}
