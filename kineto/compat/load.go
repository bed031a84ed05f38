package compat

import (
	"cmp"
	"slices"

	"tracelake/schema"
)

// Load reads a plain or gzipped Kineto trace. It fails with an Error when the
// reference refuses the trace, and with the error of the system when the file
// cannot be read. The ticks of calls and spans are schema.FloatTick of µs;
// spans are sorted by process, thread, start and descending end.
func Load(path string) (*schema.Trace, error) {
	doc, err := readText(path)
	if err != nil {
		return nil, err
	}
	return Parse(doc)
}

// Parse is Load for a text in memory.
func Parse(doc []byte) (*schema.Trace, error) {
	top, err := topLevel(doc)
	if err != nil {
		return nil, err
	}
	events, ok := top["traceEvents"]
	if !ok || events[0] != '[' {
		return nil, refuse("not a Kineto trace: missing traceEvents")
	}
	b := newBuilder()
	if err := b.header(top); err != nil {
		return nil, err
	}
	p := parser{text: events, build: true, at: 1}
	p.space()
	for index := int64(0); p.peek() != ']'; index++ {
		v, err := p.value()
		if err != nil {
			return nil, err // cannot be: the text was checked
		}
		if ph, ok := v.get("ph"); ok && ph.kind == text && ph.s == "X" {
			if err := b.event(&v); err != nil {
				return nil, &Error{Event: index, Msg: err.Error()}
			}
		}
		if end, err := p.next(']'); end || err != nil {
			break
		}
	}
	return b.finish(), nil
}

// topLevel checks a document and returns the text of the last value of each
// key, or nothing when the document is not an object.
func topLevel(doc []byte) (map[string][]byte, error) {
	p := parser{text: doc}
	p.space()
	if p.peek() != '{' {
		p.at = 0
		_, err := p.document()
		return nil, err
	}
	top := map[string][]byte{}
	_, err := p.nested(func() (value, error) {
		return value{}, p.fields(func(key string) error {
			start := p.at
			_, err := p.value()
			top[key] = doc[start:p.at]
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	if p.space(); p.at < len(doc) {
		return nil, p.fail("Extra data", p.at)
	}
	return top, nil
}

// finish sorts the spans and returns the trace.
func (b *builder) finish() *schema.Trace {
	slices.SortStableFunc(b.t.Spans, func(a, b schema.Span) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID),
			cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	b.t.GPU.Names, b.t.Launches.Names = b.names.list, b.names.list
	return b.t
}
