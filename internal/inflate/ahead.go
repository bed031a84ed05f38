package inflate

import (
	"io"
	"sync"
	"sync/atomic"
)

// A member says nowhere how several could decompress it. So the stream is read
// some pieces ahead, and each piece is decompressed from the first place on
// where a block seems to begin (find.go), with marks for the text in front of it
// that is not known yet (piece.go). The reader, which goes through the stream in
// order, adopts a piece when it comes to a block that begins exactly where the
// piece does: by then it knows the text in front. Everything else it decompresses
// itself, as if there were no pieces: what nobody has begun, wrong guesses, and
// whatever is damaged. So text and errors are those of reading in order.

// aheadLimits says how pieces are made.
type aheadLimits struct {
	minShare  int   // workers below which nothing is guessed
	pieces    int   // that are read ahead; the reader cannot take the text of more
	skip      int64 // bytes of the stream that are read in order first
	pieceText int   // bytes of text that a piece aims for
	maxText   int   // bytes of text that a piece can hold
	minPiece  int   // compressed bytes
	maxPiece  int
	failures  int  // how many pieces in a row may be of no use
	inline    bool // work is done at once, so that a test does the same each time
}

// The values are measured: docs/performance.md.
var defaultLimits = aheadLimits{
	minShare: 8, pieces: 7, skip: 512 << 10,
	pieceText: 768 << 10, maxText: 1536 << 10, minPiece: 16 << 10, maxPiece: 512 << 10, failures: 4,
}

// Memory is how much a stream takes besides its window where so many workers
// decompress it.
func Memory(workers int) int64 {
	l := &defaultLimits
	if workers < l.minShare {
		return 0
	}
	text := l.maxText + 2*l.maxText // and marks, two bytes each
	return int64(l.pieces+1) * int64(text+l.maxPiece)
}

// ahead reads a stream in pieces.
type ahead struct {
	o      *Options
	src    io.Reader
	srcErr error
	pos    int64    // of the next byte that Read gives
	end    int64    // of what was taken from src
	held   []*piece // whose bytes may still be read
	queue  []*piece // that may be adopted, in order
	size   int      // compressed bytes of the next piece

	adopted  int  // pieces
	failures int  // in a row
	stopped  bool // nothing more is guessed
	taken    *piece

	tasks  sync.WaitGroup
	busy   atomic.Int32
	closed atomic.Bool

	chain sync.Mutex // over what pieces know of each other

	mu    sync.Mutex // over the spare ones
	marks [][]uint16
	texts [][]byte
}

func (o *Options) run(work func()) {
	if o.Run != nil {
		o.Run(work)
	} else {
		work()
	}
}

func (o *Options) share() int {
	if o.Share != nil {
		return min(o.Share(), o.Workers)
	}
	return o.Workers
}

// lookAhead reads pieces and has them decompressed, if that pays.
func (r *Reader) lookAhead() {
	a, d, l := r.ahead, r.d, &r.o.limits
	if a == nil {
		if r.o.Workers < l.minShare || d.srcErr != nil || d.offset() < l.skip || r.o.share() < l.minShare {
			return
		}
		a = &ahead{o: &r.o, src: d.src, pos: d.base + int64(d.n)}
		a.end = a.pos
		a.aim(r.total, d.offset())
		r.ahead, d.src = a, a
	}
	a.drop(d.offset())
	if a.stopped || r.o.share() < l.minShare {
		return
	}
	for len(a.queue) < l.pieces && a.srcErr == nil {
		a.readPiece()
	}
}

// aim chooses the size of pieces where so much text takes so many bytes.
func (a *ahead) aim(text, bytes int64) {
	l := &a.o.limits
	a.size = max(l.minPiece, min(int(int64(l.pieceText)*bytes/max(text, 1)), l.maxPiece))
}

// drop forgets pieces in front of an offset.
func (a *ahead) drop(offset int64) {
	for len(a.held) > 0 && a.held[0].end() <= offset {
		a.held = append(a.held[:0], a.held[1:]...)
	}
}

// Read gives the bytes of the pieces, and behind them those of the source.
func (a *ahead) Read(b []byte) (int, error) {
	for _, p := range a.held {
		if a.pos < p.end() {
			n := copy(b, p.in[a.pos-p.offset:])
			a.pos += int64(n)
			return n, nil
		}
	}
	if a.srcErr != nil {
		return 0, a.srcErr
	}
	var n int
	n, a.srcErr = a.src.Read(b)
	a.pos += int64(n)
	a.end = a.pos
	return n, a.srcErr
}

// readPiece takes a piece from the source. The one in front of it can be
// decompressed then, as its last block may end in this one.
func (a *ahead) readPiece() {
	p := a.takePiece()
	if k := len(a.queue) - 1; k >= 0 && a.queue[k].next == p {
		a.start(&a.queue[k].decoded)
	}
	if p == nil {
		return
	}
	a.queue = append(a.queue, p)
	if a.srcErr != nil {
		a.start(&p.decoded)
	}
}

// takePiece reads a piece, or returns nil where the source has ended.
func (a *ahead) takePiece() *piece {
	b := make([]byte, a.size+inSlack)
	n, err := readAtLeast(a.src, b[:a.size], a.size)
	clear(b[n:])
	a.srcErr = err
	if n == 0 {
		return nil
	}
	p := &piece{in: b[:n], offset: a.end}
	p.decoded.init(func() { p.decode(a) }, func() { a.linkBehind(p) })
	p.resolved.init(func() { p.resolve(a) }, nil)
	a.end += int64(n)
	if k := len(a.held) - 1; k >= 0 && a.held[k].end() == p.offset {
		p.prev, a.held[k].next = a.held[k], p
	}
	a.held = append(a.held, p)
	return p
}

// stop returns where the reader has to look for pieces again.
func (a *ahead) stop() int64 {
	if a == nil {
		return noStop
	}
	for len(a.queue) > 0 {
		p := a.queue[0]
		if p.decoded.untouched() {
			return p.offset * 8
		}
		if start := p.begin(); start != noStop {
			return start
		}
		a.fail()
	}
	return noStop
}

// off gives up guessing.
func (a *ahead) off() {
	if a == nil {
		return
	}
	a.stopped = true
	for _, p := range a.queue {
		p.decoded.claim()
	}
	a.queue = nil
}

func (a *ahead) close() {
	a.closed.Store(true)
	for _, p := range a.queue {
		p.decoded.claim()
		p.resolved.claim()
	}
	a.tasks.Wait()
}

// candidate returns the piece that begins at a bit of the stream, if one does
// and somebody works on it.
func (a *ahead) candidate(at point) *piece {
	for len(a.queue) > 0 {
		p := a.queue[0]
		if p.decoded.untouched() && p.offset*8 > at.bit {
			return nil
		}
		if p.decoded.claim() { // to read on in order is faster than to wait
			a.pass()
			continue
		}
		switch start := p.begin(); {
		case start == noStop:
			a.fail()
		case start > at.bit:
			return nil
		case start == at.bit && p.member != at.inText:
			return p
		default:
			a.fail()
		}
	}
	return nil
}

// pass goes to the next piece.
func (a *ahead) pass() {
	a.chain.Lock()
	p := a.queue[0]
	p.prev = nil
	if p.ready && !p.linked && p.marks != nil {
		a.giveMarks(p.marks)
		p.marks = nil
	}
	p.ready = false
	a.chain.Unlock()
	a.queue = append(a.queue[:0], a.queue[1:]...)
}

// fail gives up the first piece, and all of them where too many fail. The next
// ones are smaller if its text was too long, else larger: its blocks may be.
func (a *ahead) fail() {
	l := &a.o.limits
	if p := a.queue[0]; p.decoded.ended() && p.full {
		a.size = max(l.minPiece, a.size/2)
	} else {
		a.size = min(l.maxPiece, a.size*2)
	}
	a.pass()
	if a.failures++; a.failures == l.failures {
		a.off()
	}
}

// point is a place of the stream, and the text in front of it that blocks can
// refer to.
type point struct {
	bit    int64
	inText bool // a block begins, else a member
	window []byte
}

// adopt hands out the text of a piece that begins where the reader is.
func (r *Reader) adopt() bool {
	a, d := r.ahead, r.d
	if a == nil {
		return false
	}
	at := point{bit: d.bit(), inText: r.inText}
	if r.inText {
		at.window = d.win[max(d.oldest, d.wr-maxDistance):d.wr]
	}
	p := a.candidate(at)
	if p == nil {
		return false
	}
	<-p.decoded.done
	if !a.link(at) {
		a.fail()
		return false
	}
	p.resolved.finish()
	sum, ok := p.follows(r.sum)
	if !ok {
		a.fail()
		return false
	}
	a.failures = 0
	a.adopted++
	a.pass()
	a.aim(int64(p.n), (p.after.bit-at.bit)/8)
	a.giveText(a.taken)
	a.taken = p
	r.text = p.text
	r.total += int64(p.n)
	r.sum, r.inText = sum, p.after.inText
	r.members += len(p.ends)
	if p.member {
		r.members++
	}
	r.goTo(p.after)
	return true
}

// link tells the first piece, and those that follow it, what text stands in
// front of them. It reports false where the first one begins elsewhere.
func (a *ahead) link(at point) bool {
	a.chain.Lock()
	defer a.chain.Unlock()
	p := a.queue[0]
	if !p.linked {
		if !p.link(at) {
			return false
		}
		a.linkNext(p)
	}
	return true
}

// linkBehind has the marks of a piece replaced right after it was decompressed,
// while they are in the cache, if the piece in front of it got that far.
func (a *ahead) linkBehind(p *piece) {
	a.chain.Lock()
	p.ready = true
	if p.prev != nil && p.prev.linked && !p.linked && p.link(p.prev.after) {
		a.linkNext(p)
	}
	linked := p.linked
	a.chain.Unlock()
	if linked && p.resolved.claim() {
		p.resolved.do()
	}
}

// linkNext goes on with the pieces behind one.
func (a *ahead) linkNext(p *piece) {
	for q := p.next; q != nil && q.ready && !q.linked && q.link(p.after); p, q = q, q.next {
		a.start(&q.resolved)
	}
}

// goTo lets the reader decompress from a point on.
func (r *Reader) goTo(at point) {
	d := r.d
	r.ahead.pos = at.bit / 8
	d.stream.reset(r.ahead)
	d.base = at.bit / 8
	d.skipBits(at.bit % 8)
	d.wr, d.oldest = copy(d.win, at.window), 0
}

// skipBits begins within a byte.
func (s *stream) skipBits(n int64) {
	if n > 0 {
		s.want(8)
		s.refill()
		s.take(uint(n))
	}
}

// start has a task done by another goroutine, unless too many wait already.
func (a *ahead) start(t *task) {
	if a.o.limits.inline {
		t.finish()
		return
	}
	if int(a.busy.Load()) >= 2*a.o.limits.pieces {
		return
	}
	a.busy.Add(1)
	a.tasks.Add(1)
	go func() {
		defer a.tasks.Done()
		defer a.busy.Add(-1)
		if !t.untouched() {
			return
		}
		a.o.run(func() {
			if t.claim() {
				t.do()
			}
		})
	}()
}

func (a *ahead) takeMarks() []uint16 {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.marks); n > 0 {
		m := a.marks[n-1]
		a.marks = a.marks[:n-1]
		return m
	}
	m := make([]uint16, maxDistance+a.o.limits.maxText+outSlack)
	for i := range maxDistance {
		m[i] = firstMark + uint16(i)
	}
	return m
}

func (a *ahead) giveMarks(m []uint16) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.marks = append(a.marks, m)
}

func (a *ahead) takeText(n int) []byte {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k := len(a.texts); k > 0 {
		b := a.texts[k-1]
		a.texts = a.texts[:k-1]
		return b[:n]
	}
	return make([]byte, n, a.o.limits.maxText+outSlack)
}

// giveText takes back the text of a piece, which may be none.
func (a *ahead) giveText(p *piece) {
	if p == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.texts = append(a.texts, p.text)
	p.text = nil
}
