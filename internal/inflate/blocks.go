package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// BGZF files (bgzip, samtools) are gzip files of small members that say how
// long they are, so that many can be decompressed at once. Where anything about
// them is not as it should be, the stream is read in order from there on.

const (
	maxBlockText = 64 << 10 // that the format allows
	blockHeader  = 18       // bytes of a header with nothing but the size of the block
	batchBlocks  = 8        // blocks that one goroutine decompresses
)

// batch is some blocks on their way.
type batch struct {
	in     []byte
	offset int64 // of in in the stream
	blocks int
	size   int    // of the text, as the blocks say
	text   []byte // what they hold
	doubt  bool   // the blocks are not what they seem
	done   chan struct{}
}

// blockSize returns the size of the block whose header is given, or 0.
func blockSize(h []byte) int {
	if len(h) < blockHeader || !bytes.HasPrefix(h, magic) || h[2] != 8 || h[3] != flagExtra {
		return 0
	}
	if le := binary.LittleEndian; le.Uint16(h[10:]) == 6 && h[12] == 'B' && h[13] == 'C' && le.Uint16(h[14:]) == 2 {
		if n := int(le.Uint16(h[16:])) + 1; n > blockHeader+8 {
			return n
		}
	}
	return 0
}

// nextBatch hands out the text of the next batch of blocks, if blocks follow.
func (r *Reader) nextBatch() bool {
	if !r.blocks {
		return false
	}
	if r.batch != nil {
		r.spare = append(r.spare, r.batch)
		r.batch = nil
	}
	for len(r.queue) <= r.o.Workers {
		b := r.takeBatch()
		if b == nil {
			break
		}
		r.queue = append(r.queue, b)
		go func() {
			defer close(b.done)
			if b.doubt {
				return
			}
			r.o.run(b.decode)
		}()
	}
	if len(r.queue) == 0 {
		return false
	}
	b := r.queue[0]
	<-b.done
	if b.doubt {
		r.inOrder()
		return false
	}
	r.queue = append(r.queue[:0], r.queue[1:]...)
	r.batch = b
	r.text = b.text
	r.total += int64(len(b.text))
	r.members += b.blocks
	return true
}

// takeBatch takes blocks from the stream, or returns nil where none follows.
func (r *Reader) takeBatch() *batch {
	var b *batch
	d := r.d
	for {
		d.want(blockHeader)
		n := blockSize(d.buf[d.ip:d.n])
		if n == 0 {
			return b
		}
		if b == nil {
			b = r.newBatch()
		}
		for n > 0 {
			d.want(1)
			k := min(n, d.n-d.ip)
			if k == 0 {
				b.doubt = true // cut off
				return b
			}
			b.in = append(b.in, d.buf[d.ip:d.ip+k]...)
			d.ip += k
			n -= k
		}
		b.blocks++
		size := binary.LittleEndian.Uint32(b.in[len(b.in)-4:])
		if size > maxBlockText {
			b.doubt = true
			return b
		}
		b.size += int(size)
		if b.blocks == batchBlocks {
			return b
		}
	}
}

func (r *Reader) newBatch() *batch {
	b := &batch{}
	if n := len(r.spare); n > 0 {
		b = r.spare[n-1]
		r.spare = r.spare[:n-1]
	}
	*b = batch{in: b.in[:0], text: b.text[:0], offset: r.d.offset(), done: make(chan struct{})}
	return b
}

// decode decompresses the blocks. They have to end where they said, with as
// much text as they said.
func (b *batch) decode() {
	z := Open(bytes.NewReader(b.in), Options{})
	defer z.Close()
	if cap(b.text) < b.size+1 {
		b.text = make([]byte, batchBlocks*maxBlockText+1)
	}
	// One byte more, to come upon the end.
	n, err := io.ReadFull(z, b.text[:b.size+1])
	b.text = b.text[:n]
	b.doubt = n != b.size || err == nil || !errors.Is(z.err, io.EOF) || z.trailing || z.members != b.blocks
}

// inOrder gives back what was taken and reads on in order.
func (r *Reader) inOrder() {
	d := r.d
	var parts []io.Reader
	for _, b := range r.queue {
		<-b.done
		parts = append(parts, bytes.NewReader(b.in))
	}
	parts = append(parts, bytes.NewReader(bytes.Clone(d.buf[d.ip:d.n])), &rest{d.src, d.srcErr})
	base := r.queue[0].offset
	d.reset(io.MultiReader(parts...))
	d.base = base
	r.queue, r.spare, r.blocks = nil, nil, false
	r.ahead.off()
}

// rest is what follows in a source that may have ended.
type rest struct {
	src io.Reader
	err error
}

func (s *rest) Read(p []byte) (int, error) {
	if s.err != nil {
		return 0, s.err
	}
	return s.src.Read(p)
}
