package kineto

// DefaultSpillAfter is how many bytes of packed values a table keeps in memory
// before they go to a file.
const DefaultSpillAfter = 8 << 20

const (
	// spillBlock is how many bytes of a table go to the file at a time.
	spillBlock = 1 << 20
	// readBlock is how many bytes of a column come back at a time.
	readBlock = 64 << 10
)

// unload moves what a table holds in memory to the file, the columns of a block
// one after another.
func (r *Retained) unload() {
	// Little stays where it is; then a block goes at a time.
	if r.held < min(spillBlock, r.after) || r.first == 0 && r.held < r.after || r.spill.Full() {
		return
	}
	at := make([]int64, len(r.segs))
	for c := range r.segs {
		r.buf = r.buf[:0]
		for i := range r.segs[c][r.first:] {
			r.buf = append(r.buf, r.segs[c][r.first+i].data...)
		}
		var ok bool
		if at[c], ok = r.spill.Put(r.buf); !ok {
			return
		}
	}
	for c := range r.segs {
		for i := range r.segs[c][r.first:] {
			g := &r.segs[c][r.first+i]
			g.at, g.data = at[c], nil
			at[c] += int64(g.size())
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
			if _, err := r.spill.ReadAt(buf, at); err != nil {
				clear(buf) // Err says why
			}
		}
		for from := 0; i < k; i++ {
			rows += segs[i].unpack(out[rows:], buf[from:])
			from += segs[i].size()
		}
	}
	return rows
}

// Err returns why values that Values returned are not those of the trace: the
// file that they were put aside in could not be read.
func (r *Retained) Err() error { return r.spill.Err() }

// DropBuffers frees the memory that readers keep for the next trace. It pays
// where much else is about to be needed.
func DropBuffers() {
	batches.Drop()
	texts.Drop()
	for t := range memories {
		memories[t].Drop()
	}
}
