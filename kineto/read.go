package kineto

import (
	"context"
	"errors"
	"hash"
	"io"
	"strconv"
	"sync"

	"tracelake/internal/digest"
	"tracelake/internal/freelist"
)

// Read reads one trace from its stored form. It returns a *RejectedError for
// what is no trace, and a *RestartError where the options have to change.
func Read(ctx context.Context, src io.Reader, o Options) (*Result, error) {
	o.fill()
	text, err := openText(src, o.gzip())
	if err != nil {
		return nil, err
	}
	defer text.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := &pipeline{o: o, text: text, digest: digest.New(), ctx: ctx}
	first, eof, err := p.readHead()
	if err != nil {
		return nil, err
	}
	if eof {
		return p.single(first)
	}
	p.jobs = make(chan *job, o.Workers)
	p.order = make(chan *job, o.Workers)
	p.free = make(chan []byte, o.Workers+4)

	var wg sync.WaitGroup
	for range o.Workers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p.decodeChunks()
		}()
	}
	readErr := make(chan error, 1)
	wg.Add(1)
	go func() {
		defer wg.Done()
		readErr <- p.readChunks(first)
	}()
	c := newCommitter(p)
	err = c.run()
	cancel()
	for range p.order { // let the reader end
	}
	wg.Wait()
	if rerr := <-readErr; rerr != nil && (err == nil || errors.Is(err, errNoEnd)) {
		err = rerr
	}
	if err != nil {
		return nil, err
	}
	return c.result()
}

// single decodes a text that is one chunk, as most are: without goroutines, whose
// stacks would grow anew for every file.
func (p *pipeline) single(j *job) (*Result, error) {
	j.final = true
	p.order = make(chan *job, 1)
	p.order <- j
	close(p.order)
	d := p.decodeChunk(nil, j)
	decoders.Put(d)
	c := newCommitter(p)
	if err := c.run(); err != nil {
		return nil, err
	}
	return c.result()
}

// texts keeps the memory of texts that are one chunk.
var texts = freelist.List[[]byte]{New: func() []byte { return nil }}

// errNoEnd says that the chunks ended before the last one came.
var errNoEnd = errors.New("kineto: reading stopped")

// job is one chunk on its way from the reader to the committer.
type job struct {
	buf   []byte // text and pad readable bytes
	n     int    // bytes of text
	off   int64  // offset in the text
	final bool
	start int // where the first member is, or -1 where the worker has to guess

	out  *batch // what it decodes to, from start on
	next int
	st   status
	done chan struct{}
}

// pipeline connects reader, workers and committer.
type pipeline struct {
	o      Options
	text   *textReader
	digest hash.Hash
	total  int64
	ctx    context.Context
	jobs   chan *job // to the workers
	order  chan *job // to the committer, in order
	free   chan []byte
	header headerText
}

func (p *pipeline) buffer(n int) []byte {
	select {
	case b := <-p.free:
		if cap(b) >= n+pad {
			return b[:n+pad]
		}
	default:
	}
	return make([]byte, n+pad)
}

func (p *pipeline) batch() *batch {
	b := batches.Get()
	b.reset()
	return b
}

// recycle takes back what a job used.
func (p *pipeline) recycle(buf []byte, b *batch) {
	switch {
	case buf == nil || cap(buf) > p.o.ChunkSize+pad:
	case p.free == nil:
		texts.Put(buf)
	default:
		select {
		case p.free <- buf:
		default:
		}
	}
	if b != nil {
		batches.Put(b)
	}
}

// fillSlowly reads size more bytes behind the first n of b, in steps that
// start small, because most files are smaller than a chunk. The result is
// readable for pad bytes behind its text.
func (p *pipeline) fillSlowly(b []byte, n, size int) (out []byte, eof bool, err error) {
	step := 64 << 10
	if p.o.SizeHint > 0 {
		step = int(min(p.o.SizeHint+1, int64(size)))
	}
	for want := n + size; n < want && !eof; step *= 4 {
		step = min(step, want-n)
		if n+step+pad > cap(b) {
			b = append(make([]byte, 0, n+step+pad), b[:n]...)
		}
		b = b[:n+step+pad]
		k := 0
		k, eof, err = p.fill(b[n : n+step])
		if err != nil {
			return nil, false, err
		}
		n += k
	}
	b = b[:n+pad]
	return b, eof, nil
}

// fillStep is how much text is read and digested at a time.
const fillStep = 256 << 10

// fill reads up to n bytes of text into b and reports whether the text ends.
func (p *pipeline) fill(b []byte) (n int, eof bool, err error) {
	for n < len(b) && err == nil {
		// In steps, so that the digest finds the text in the cache.
		var k int
		k, err = io.ReadFull(p.text, b[n:min(n+fillStep, len(b))])
		_, _ = p.digest.Write(b[n : n+k])
		n += k
	}
	p.total += int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return n, true, nil
	}
	return n, false, err
}

// readHead reads the header, however many chunks it takes, and returns the first
// chunk with the start of the event array.
func (p *pipeline) readHead() (j *job, eof bool, err error) {
	size := p.o.ChunkSize
	head := texts.Get()
	n, start := 0, short
	for start < 0 {
		if eof {
			return nil, false, p.text.blame("no event array")
		}
		if head, eof, err = p.fillSlowly(head, n, size); err != nil {
			return nil, false, err
		}
		n = len(head) - pad
		clear(head[n : n+pad])
		start, err = p.header.start(head, eof, p.o.SkipTo)
		var cut *cutError
		if errors.As(err, &cut) {
			what := "no event array: the text ends within the header, at byte " + strconv.FormatInt(cut.off, 10)
			if cut.off == 0 {
				what = "empty: the file holds no text"
			}
			return nil, false, p.text.blame(what)
		}
		if err != nil {
			return nil, false, err
		}
		if start < 0 && n > maxHeaderBytes {
			return nil, false, rejectAt(int64(n), "no event array in the first %d MiB", maxHeaderBytes>>20)
		}
	}
	if p.header.events <= p.o.SkipTo || p.header.events == 0 {
		return nil, false, p.noEvents(head, start, eof)
	}
	return &job{buf: head[:n+pad], n: n, start: start, done: make(chan struct{})}, eof, nil
}

// readChunks hands out the first chunk and those that it reads behind it.
func (p *pipeline) readChunks(j *job) error {
	defer close(p.order)
	defer close(p.jobs)
	size := p.o.ChunkSize
	off := int64(j.n)
	for eof := false; ; {
		if eof {
			j.final = true
			return p.send(j)
		}
		b := p.buffer(size)
		k, end, err := p.fill(b[:size])
		if err != nil {
			return err
		}
		eof = end
		j.final = eof && k == 0
		if err := p.send(j); err != nil {
			return err
		}
		if j.final {
			return nil
		}
		clear(b[k : k+pad])
		j = &job{buf: b[:k+pad], n: k, off: off, start: -1, done: make(chan struct{})}
		off += int64(k)
	}
}

func (p *pipeline) send(j *job) error {
	for _, ch := range []chan *job{p.order, p.jobs} {
		select {
		case ch <- j:
		case <-p.ctx.Done():
			close(j.done)
			return p.ctx.Err()
		}
	}
	return nil
}

// noEvents explains a JSON object that has no event array and ends at end.
func (p *pipeline) noEvents(b []byte, end int, eof bool) error {
	rest := skipSpace(b, end, len(b)-pad)
	for rest == len(b)-pad && !eof && len(b) < maxHeaderBytes { // what follows tells what it is
		var err error
		if b, eof, err = p.fillSlowly(b, len(b)-pad, 4096); err != nil {
			return err
		}
		rest = skipSpace(b, rest, len(b)-pad)
	}
	if rest < len(b)-pad && (b[rest] == '{' || b[rest] == '[') {
		return rejectAt(int64(rest), "several JSON documents in one file and no trace: one event per line is not a trace")
	}
	if p.header.other {
		return reject("not a trace: a JSON object without a traceEvents array (traceEvents is no array)")
	}
	if len(p.header.order) == 0 {
		return reject("empty: a JSON object without keys")
	}
	keys := ""
	for i, k := range p.header.order {
		if i == 5 {
			keys += ", …"
			break
		}
		if i > 0 {
			keys += ", "
		}
		keys += quoteShort([]byte(k)[:min(len(k), 40)])
	}
	return reject("not a trace: a JSON object without a traceEvents array (it has %s)", keys)
}

// decodeChunks is the work of one worker.
func (p *pipeline) decodeChunks() {
	var d *decoder
	defer func() {
		if d != nil {
			decoders.Put(d)
		}
	}()
	for j := range p.jobs {
		d = p.decodeChunk(d, j)
	}
}

// decodeChunk decodes a chunk under the gate, with a decoder that the caller
// has or gets now.
func (p *pipeline) decodeChunk(d *decoder, j *job) *decoder {
	if p.o.Gate != nil {
		p.o.Gate <- struct{}{}
		defer func() { <-p.o.Gate }()
	}
	if d == nil {
		d = decoders.Get()
	}
	if j.start < 0 {
		j.start = guessStart(j.buf, j.n)
	}
	if j.start >= 0 {
		j.out = p.batch()
		d.decode(j, j.start)
	}
	close(j.done)
	return d
}

// decoders keeps what decoders have learned from file to file.
var decoders = freelist.List[*decoder]{New: newDecoder}

// decode decodes a chunk from a position on into its batch.
func (d *decoder) decode(j *job, from int) {
	d.begin(j.buf, j.n, j.final, j.out)
	j.start = from
	j.next, j.st = d.run(from, j.n+1)
	d.flushKinds()
}

// guessStart looks for the first event of a chunk that starts anywhere.
func guessStart(b []byte, n int) int {
	for i := 0; i < n; i++ {
		if b[i] == ',' {
			if k := skipSpace(b, i+1, n); startsEvent(b, k, n) {
				return k
			}
		}
	}
	return -1
}

func (p *pipeline) sum() string { return digest.Text(p.digest) }
