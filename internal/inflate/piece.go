package inflate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"

	"tracelake/internal/freelist"
)

// firstMark is the first of maxDistance symbols that stand for the bytes in
// front of a piece; those below it are bytes.
const firstMark = 1 << 8

// piece is a part of the compressed stream and what it decompresses to.
type piece struct {
	in     []byte // with inSlack zeros behind it
	offset int64  // of in
	next   *piece // nil behind the last one
	prev   *piece // nil once it does not matter

	find   sync.Once
	start  int64 // the bit where a block or a member seems to begin; noStop where none does
	member bool  // it is a member

	decoded task
	marks   []uint16 // a window of marks, and text as bytes and marks
	n       int      // bytes of text
	ends    []memberEnd
	after   point
	full    bool // the text did not fit

	ready    bool // decoded, and what follows is about to know
	linked   bool
	bytes    *lookup
	resolved task
	text     []byte
	first    checksum // of the text of the member that goes on at the start
	last     checksum // of the text of the member that goes on at the end
	wrong    bool     // a member within the piece is not what it says
}

// memberEnd is where a member ends in the text of a piece, and what it says.
type memberEnd struct {
	at  int
	sum checksum
}

func (p *piece) end() int64 { return p.offset + int64(len(p.in)) }

// streams keeps tables.
var streams = freelist.List[*stream]{New: func() *stream {
	return &stream{buf: make([]byte, inSize+inSlack)}
}}

// begin looks for the start, the first time.
func (p *piece) begin() int64 {
	p.find.Do(func() {
		s := streams.Get()
		defer streams.Put(s)
		bit := findBlock(s, p.in[:len(p.in)+inSlack])
		limit := len(p.in)
		if bit >= 0 {
			limit = bit / 8
		}
		if k := findMember(s, p.in[:len(p.in)+inSlack], limit); k >= 0 {
			p.member = true
			bit = k * 8
		}
		p.start = noStop
		if bit >= 0 {
			p.start = p.offset*8 + int64(bit)
		}
	})
	return p.start
}

// decode decompresses from the start on until the next piece begins. Where the
// bits mean nothing, the compressed bytes end, or there is no more room, what
// came before the block at hand is what counts.
func (p *piece) decode(a *ahead) {
	if p.begin() == noStop {
		return
	}
	stop := int64(noStop)
	from := p.start / 8
	src := []io.Reader{bytes.NewReader(p.in[from-p.offset:])}
	if p.next != nil {
		stop = p.next.begin()
		src = append(src, bytes.NewReader(p.next.in))
	}
	s := streams.Get()
	defer streams.Put(s)
	s.reset(io.MultiReader(src...))
	s.base = from
	s.skipBits(p.start % 8)
	p.marks = a.takeMarks()
	out := output[uint16]{win: p.marks, wr: maxDistance}
	if p.member && !p.header(s, &out) {
		return
	}
	members := 0
	for {
		if s.state == betweenBlocks {
			p.n, p.after, members = out.wr-maxDistance, point{bit: s.bit(), inText: true}, len(p.ends)
			if s.bit() >= stop || a.closed.Load() || s.blockHeader() != nil {
				break
			}
		}
		err := decode(s, &out, 0)
		if errors.Is(err, errStop) {
			continue
		}
		if !errors.Is(err, io.EOF) {
			p.full = err == nil
			break
		}
		sum, err := s.trailer()
		if err != nil {
			break
		}
		p.ends = append(p.ends, memberEnd{out.wr - maxDistance, sum})
		p.n, p.after, members = out.wr-maxDistance, point{bit: s.bit()}, len(p.ends)
		if s.bit() >= stop {
			break
		}
		if _, err := s.skipPadding(); err != nil || s.bit() >= stop || !p.header(s, &out) {
			break
		}
	}
	p.ends = p.ends[:members]
}

// header goes to the text of a member, in front of which nothing counts.
func (*piece) header(s *stream, out *output[uint16]) bool {
	if s.header() != nil {
		return false
	}
	s.begin()
	out.oldest = out.wr
	return true
}

// lookup gives the byte that a symbol stands for.
type lookup [1 << 16]byte

// link says what stands in front of the piece. It reports false where the
// piece does not follow, or nothing came of it.
func (p *piece) link(at point) bool {
	if p.n == 0 || p.begin() != at.bit || p.member == at.inText || at.inText && len(at.window) < maxDistance {
		return false
	}
	p.linked = true
	p.bytes = new(lookup)
	for i := range firstMark {
		p.bytes[i] = byte(i)
	}
	copy(p.bytes[firstMark:], at.window)
	if !p.after.inText {
		return true
	}
	from := -len(at.window)
	if n := len(p.ends); n > 0 {
		from = p.ends[n-1].at
	}
	p.after.window = make([]byte, min(p.n-from, maxDistance))
	known := maxDistance + p.n - len(p.after.window)
	p.bytes.replace(p.after.window, p.marks[known:])
	return true
}

// replace writes the bytes that symbols stand for, eight at a time.
func (l *lookup) replace(to []byte, from []uint16) {
	from = from[:len(to)]
	for len(to) >= 8 && len(from) >= 8 {
		f := (*[8]uint16)(from)
		lo := uint32(l[f[0]]) | uint32(l[f[1]])<<8 | uint32(l[f[2]])<<16 | uint32(l[f[3]])<<24
		hi := uint32(l[f[4]]) | uint32(l[f[5]])<<8 | uint32(l[f[6]])<<16 | uint32(l[f[7]])<<24
		binary.LittleEndian.PutUint64(to, uint64(lo)|uint64(hi)<<32)
		to, from = to[8:], from[8:]
	}
	for i, v := range from {
		to[i] = l[v]
	}
}

// resolve replaces the marks and checks the members.
func (p *piece) resolve(a *ahead) {
	const step = 32 << 10 // what stays in the cache for the checksum
	p.text = a.takeText(p.n)
	marks := p.marks[maxDistance:]
	var sum checksum
	from := 0
	for k := 0; k <= len(p.ends); k++ {
		end := p.n
		if k < len(p.ends) {
			end = p.ends[k].at
		}
		for from < end {
			to := min(from+step, end)
			p.bytes.replace(p.text[from:to], marks[from:])
			sum.add(p.text[from:to])
			from = to
		}
		if k == 0 {
			p.first = sum
		} else if k < len(p.ends) && sum != p.ends[k].sum {
			p.wrong = true
			break
		}
		p.last = sum
		sum = checksum{}
	}
	a.giveMarks(p.marks)
	p.marks, p.bytes = nil, nil
}

// follows returns the checksum of the member that goes on behind the piece,
// where the text in front of it has the given one, and whether all members
// are what they say.
func (p *piece) follows(before checksum) (checksum, bool) {
	first := p.first
	if !p.member {
		first = before.followedBy(first)
	}
	if len(p.ends) == 0 {
		return first, true
	}
	return p.last, !p.wrong && first == p.ends[0].sum
}
