package kineto

import (
	"errors"
	"fmt"
	"strconv"

	"tracelake/schema"
)

// committer takes decoded chunks in order. It proves that each chunk was
// decoded from where the one before ended, decodes the event that straddles
// two chunks, and decodes chunks again whose start was guessed wrong.
type committer struct {
	p   *pipeline
	d   *decoder // for straddling events and wrong guesses
	res *Result

	pos     int64  // where the next member is, in the text
	carry   []byte // text from pos on that earlier chunks left
	trailer []byte // text behind the event array
	closed  bool   // the event array ended
	trailAt int64  // offset of trailer

	names    *interner
	mapping  remap
	tables   [numTables]*assembler
	keep     [numTables]*Retained
	kinds    map[Kind]int64
	times    timeStats
	gen      uint32
	baseNS   int64
	phases   int64 // events with a phase
	endOfAll int64
}

func newCommitter(p *pipeline) *committer {
	c := &committer{
		p: p, d: decoders.Get(), names: newInterner(), kinds: map[Kind]int64{},
		res: &Result{Diags: &schema.Diagnostics{}, Rows: map[string]int64{}},
	}
	c.mapping.names = c.names
	for id := tableID(0); id < numTables; id++ {
		if id.retained() {
			c.keep[id] = &Retained{Table: specs[id].table, segs: make([][]segment, len(specs[id].table.Columns)), names: c.names, spill: p.o.Spill, after: p.o.SpillAfter}
		} else {
			c.tables[id] = newAssembler(id, p.o.RowGroup)
		}
	}
	return c
}

func (c *committer) run() error {
	defer decoders.Put(c.d)
	first := true
	final := false
	for j := range c.p.order {
		select {
		case <-j.done:
		case <-c.p.ctx.Done():
			return c.p.ctx.Err()
		}
		if first {
			c.pos = int64(j.start)
			c.baseNS = c.p.o.BaseNS
			if h := c.p.header.parse(); h.BaseNS.OK && !c.p.o.BaseKnown {
				c.baseNS = h.BaseNS.V
			}
			first = false
		}
		if err := c.take(j); err != nil {
			return err
		}
		if j.final {
			final = true
			c.endOfAll = j.off + int64(j.n)
			break
		}
	}
	if !final {
		return errNoEnd
	}
	return c.finish()
}

// take commits one chunk.
func (c *committer) take(j *job) error {
	defer func() {
		c.p.recycle(j.buf, j.out)
		j.buf, j.out = nil, nil
	}()
	if c.closed {
		return c.addTrailer(j.buf[:j.n])
	}
	from := int(c.pos - j.off)
	if len(c.carry) > 0 {
		next, done, err := c.straddle(j)
		if err != nil || !done {
			return err
		}
		from = next
	}
	if j.out == nil || j.start != from {
		if j.out == nil {
			j.out = c.p.batch()
		} else {
			j.out.reset()
		}
		c.d.decode(j, from)
	}
	if j.st == tooDeep {
		return rejectAt(j.off+int64(j.next), "a value is nested deeper than %d", maxDepth)
	}
	if err := c.commit(j.out, j.off); err != nil {
		return err
	}
	c.pos = j.off + int64(j.next)
	if j.st == arrayEnd {
		c.closed, c.trailAt = true, c.pos
		return c.addTrailer(j.buf[j.next:j.n])
	}
	return c.addCarry(j.buf[j.next:j.n])
}

func (c *committer) addCarry(b []byte) error {
	c.carry = append(c.carry, b...)
	if len(c.carry) > maxEventBytes {
		return rejectAt(c.pos, "an event is larger than %d MiB", maxEventBytes>>20)
	}
	return nil
}

func (c *committer) addTrailer(b []byte) error {
	c.trailer = append(c.trailer, b...)
	if len(c.trailer) > maxHeaderBytes {
		return rejectAt(c.trailAt, "more than %d MiB of text behind the events", maxHeaderBytes>>20)
	}
	return nil
}

// straddle decodes the members that begin in the carried text. next is where
// to go on in the chunk; done is false where the chunk was used up.
func (c *committer) straddle(j *job) (next int, done bool, err error) {
	have := len(c.carry)
	for take := max(64<<10, have); ; take *= 8 { // with a large carry, one copy
		take = min(take, j.n)
		final := j.final && take == j.n
		buf := make([]byte, have+take+pad)
		copy(buf, c.carry)
		copy(buf[have:], j.buf[:take])
		out := c.p.batch()
		c.d.begin(buf, have+take, final, out)
		at, st := c.d.run(0, have)
		c.d.flushKinds()
		if st == shortText && at < have && take < j.n {
			c.p.recycle(nil, out)
			continue // more of the chunk may complete it
		}
		if st == tooDeep {
			return 0, false, rejectAt(c.pos, "a value is nested deeper than %d", maxDepth)
		}
		if err := c.commit(out, c.pos); err != nil {
			return 0, false, err
		}
		c.p.recycle(nil, out)
		old := c.pos
		c.pos += int64(at)
		switch {
		case st == arrayEnd:
			c.closed, c.trailAt = true, c.pos
			c.carry = nil
			if at < have { // the rest of the carried text belongs to the trailer
				c.trailer = append(c.trailer, buf[at:have]...)
				return 0, false, c.addTrailer(j.buf[:j.n])
			}
			return 0, false, c.addTrailer(j.buf[at-have : j.n])
		case at < have: // short: everything from at on is carried on
			rest := append([]byte(nil), c.carry[c.pos-old:]...)
			c.carry = rest
			return 0, false, c.addCarry(j.buf[:j.n])
		}
		c.carry = c.carry[:0]
		return at - have, true, nil
	}
}

// commit takes over the rows of a batch. off is the offset of its text.
func (c *committer) commit(b *batch, off int64) error {
	base := c.res.Events
	c.mapping.reset(b.strs)
	c.gen++
	for id := range b.tables {
		t := &b.tables[id]
		if t.n == 0 {
			continue
		}
		tab := tableID(id)
		if tab.retained() {
			if tab == tabBeginEnd && c.keep[tab].n > maxBeginEnd {
				return rejectAt(off, "more than %d begin and end events", maxBeginEnd)
			}
			c.keep[tab].add(t, base, &c.mapping)
			continue
		}
		c.res.Rows[specs[tab].table.Name] += int64(t.n)
		if !c.p.o.wants(tab) {
			continue
		}
		a := c.tables[tab]
		a.add(t, b.strs, tab, base, c.baseNS, c.gen)
		if int(a.n) >= c.p.o.RowGroup || a.bytes > maxGroupText {
			if err := c.flush(tab); err != nil {
				return err
			}
		}
	}
	if len(c.names.buf) > maxNameBytes {
		return rejectAt(off, "more than %d MiB of different names and arguments of GPU events, launches, ranges and begin and end events", maxNameBytes>>20)
	}
	for k, n := range b.kinds {
		kind := Kind{}
		if k.ph != noString {
			kind.Phase = string(b.strs.at(k.ph))
			c.phases += n
		}
		if k.cat != noString {
			kind.Category = string(b.strs.at(k.cat))
		}
		if _, ok := c.kinds[kind]; ok || len(c.kinds) < maxKindsCounted {
			c.kinds[kind] += n
		}
	}
	seen := map[schema.Code]int64{}
	for _, n := range b.notes {
		seen[n.code]++
		c.res.Diags.Add(n.code, off+n.offset, base+n.member, 1, n.message)
	}
	for code, n := range b.count {
		c.res.Diags.AddMore(code, n-seen[code])
	}
	c.times.add(&b.times)
	c.res.Events += b.members
	return nil
}

func (c *committer) flush(tab tableID) error {
	if c.tables[tab].n == 0 {
		return nil
	}
	rows, cols, done := c.tables[tab].take()
	if c.p.o.RowGroups == nil {
		done()
		return nil
	}
	return c.p.o.RowGroups(specs[tab].table, rows, cols, done)
}

// finish checks how the text ends, pairs begin and end events and writes what
// is left.
func (c *committer) finish() error {
	h := &c.p.header
	d := c.res.Diags
	for _, n := range c.p.text.notes {
		d.Add(n.code, n.offset, n.member, 1, n.message)
	}
	switch {
	case !c.closed:
		rest := len(c.carry)
		for rest > 0 && isSpace(c.carry[rest-1]) {
			rest--
		}
		if h.array && rest == 0 {
			d.Add(schema.UnclosedArray, c.endOfAll, schema.Null, 1, "no bracket closes the array")
		} else {
			what := "between events"
			if rest > 0 {
				what = "within the event at byte " + strconv.FormatInt(c.pos, 10)
			}
			d.Add(schema.TextCut, c.endOfAll, schema.Null, 1, "the text ends "+what)
		}
	default:
		if err := c.readTrailer(h); err != nil {
			return err
		}
	}
	for _, n := range h.notes {
		d.Add(n.code, n.offset, n.member, 1, n.message)
	}
	head := h.parse()
	if head.BaseNS.OK && head.BaseNS.V != c.baseNS {
		return &RestartError{BaseNS: head.BaseNS.V, BaseKnown: true, SkipTo: c.p.o.SkipTo}
	}
	if !head.BaseNS.OK && c.baseNS != 0 {
		return &RestartError{BaseKnown: true, SkipTo: c.p.o.SkipTo}
	}
	if h.array && c.phases == 0 {
		return c.p.text.blame("not a trace: a JSON array without events")
	}
	if !h.array && c.phases == 0 && c.res.Events > 0 && c.res.Events == d.Count(schema.NonObjectEvent)+d.Count(schema.NoPhase)+d.Count(schema.EmptyEvent)+d.Count(schema.BrokenEvent) && d.Count(schema.BrokenEvent) > 0 {
		return c.p.text.blame("not a trace: no event can be read")
	}
	c.res.Header, c.res.Array, c.res.BaseNS = head, h.array, c.baseNS
	if err := c.pairEvents(); err != nil {
		return err
	}
	if err := c.keep[tabBeginEnd].Err(); err != nil { // that of all tables
		return err
	}
	for tab := tabBeginEnd + 1; tab < numTables; tab++ {
		if err := c.flush(tab); err != nil {
			return err
		}
	}
	return nil
}

// readTrailer reads the header keys behind the event array.
func (c *committer) readTrailer(h *headerText) error {
	n := len(c.trailer)
	b := append(c.trailer, make([]byte, pad)...)
	i := 0
	if !h.array {
		var err error
		events := h.events
		i, err = h.members(b, 0, n, c.trailAt, true, 1<<30)
		var cut *cutError
		if errors.As(err, &cut) {
			c.res.Diags.Add(schema.TextCut, c.endOfAll, schema.Null, 1, "the text ends behind the events, within the header")
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case h.events > events:
			if c.p.o.SkipTo > 16 {
				return rejectAt(c.trailAt, "more than 16 event arrays")
			}
			return &RestartError{BaseNS: c.p.o.BaseNS, BaseKnown: c.p.o.BaseKnown, SkipTo: h.events - 1}
		case h.other:
			return rejectAt(c.trailAt, "not a trace: a second traceEvents that is no array replaces the first")
		}
	}
	if c.p.o.SkipTo > 0 {
		c.res.Diags.Add(schema.DuplicateKey, schema.Null, schema.Null, int64(c.p.o.SkipTo), fmt.Sprintf("%d earlier event arrays do not count", c.p.o.SkipTo))
	}
	i = skipSpace(b, i, n)
	if i >= n {
		return nil
	}
	if b[i] == '{' || b[i] == '[' {
		return rejectAt(c.trailAt+int64(i), "a second JSON document follows the trace")
	}
	c.res.Diags.Add(schema.TrailingBytes, c.trailAt+int64(i), schema.Null, 1, fmt.Sprintf("%d bytes behind the end of the trace", n-i))
	return nil
}

func (c *committer) result() (*Result, error) {
	r := c.res
	r.GPU, r.Launches, r.Ranges = c.keep[tabGPU], c.keep[tabLaunches], c.keep[tabRanges]
	r.Kinds = c.kinds
	r.TextBytes = c.p.total
	r.Digest = c.p.sum()
	t := &c.times
	r.Fine = t.fine
	r.First, r.Last = schema.Null, schema.Null
	if t.any {
		r.First, r.Last = t.first, t.last
	}
	if t.zeroAny {
		if t.any && t.first > lostTimeGap {
			r.ZeroLost = true
			r.Diags.Add(schema.ZeroTime, schema.Null, schema.Null, max(t.zeros, 1), "events at time 0, far before all others")
		} else {
			if r.First == schema.Null || r.First > 0 {
				r.First = 0
			}
			r.Last = max(r.Last, t.zeroLast)
		}
	}
	r.Absolute = t.epoch*2 > t.timed
	if t.shortFraction {
		r.Diags.Add(schema.UnpaddedNS, schema.Null, schema.Null, 1, "fractions of one or two digits, read as decimals of a microsecond")
	}
	r.Rows[schema.TableGPUEvents.Name] = int64(r.GPU.n)
	r.Rows[schema.TableLaunches.Name] = int64(r.Launches.n)
	r.Rows[schema.TableRanges.Name] = int64(r.Ranges.n)
	return r, nil
}

// lostTimeGap is how far the first event must be from time 0 before events at
// time 0 count as having lost their time, in ns.
const lostTimeGap = 3600 * 1e9
