package kineto

import "bytes"

// mender reads the text of one broken event by trying, for each string, every
// quote that might close it, nearest first, until the event ends exactly where
// it has to.
type mender struct {
	b     []byte
	end   int // behind the closing brace of the event
	trust trust
	tries int
	work  int // bytes that may still be looked at
	parts []part
}

// trust says which keys are taken for keys. What the decoder has learned must
// not count: it depends on where the text was cut.
type trust uint8

const (
	trustKnown trust = iota // those with a slot, each once
	trustArgs               // in args also others, each once
	trustAll
)

// part is one key with its value, or the start or end of args.
type part struct {
	key, val []byte
	text     bool // val is the inside of a string
	raw      bool // val could not be read and becomes text
	args     int  // +1 args begin, -1 args end
}

// mend returns the text of the event in b[start:end] as proper JSON, and what
// was wrong with each string.
//
// There must be no event within: strings and the event could hide it.
func mend(b []byte, start, end int) (text []byte, flaws []flaw, ok bool) {
	for t := trustKnown; t <= trustAll; t++ {
		m := &mender{b: b, end: end, trust: t, work: minRepairWork + (end-start)*maxRepairWork}
		if m.members(start+1, false, func(i int) bool { return i == m.end }) {
			text, flaws = m.write()
			return text, flaws, true
		}
	}
	return nil, nil, false
}

func (m *mender) known(key []byte, args bool) bool {
	if m.trust == trustAll || args && m.trust == trustArgs {
		return true
	}
	known := topSlot
	if args {
		known = argSlot
	}
	_, ok := known[string(key)]
	return ok || !args && string(key) == "args"
}

// used reports whether the object at hand has a key already.
func (m *mender) used(key []byte) bool {
	depth := 0
	for k := len(m.parts) - 1; k >= 0; k-- {
		p := &m.parts[k]
		switch {
		case p.args < 0:
			depth++
			continue
		case p.args > 0 && depth == 0:
			return false // the start of the args at hand
		case p.args > 0:
			depth--
		}
		if depth == 0 && string(p.key) == string(key) {
			return true
		}
	}
	return false
}

// plausible reports whether a string can be the value of a key. It keeps a
// broken event from hiding its keys in a name.
func plausible(key, val []byte, args bool) bool {
	if !args {
		switch string(key) {
		case "ph":
			return len(val) == 1
		case "cat", "s", "bp":
			return bytes.IndexByte(val, '"') < 0
		}
	}
	return true
}

// eventWithin returns the position in s of an object that looks like an event
// and stands behind a comma, or -1.
func eventWithin(s []byte) int {
	phase, brace := -1, -1 // the first ones behind a position that was looked at
	for i := 0; i < len(s); {
		k := bytes.IndexByte(s[i:], ',')
		if k < 0 {
			return -1
		}
		i += k + 1
		j := skipSpace(s, i, len(s))
		if !startsEvent(s, j, len(s)) {
			continue
		}
		if phase < j {
			if k = bytes.Index(s[j:], []byte(`"ph"`)); k < 0 {
				return -1
			}
			phase = j + k
		}
		if brace < j {
			if k = bytes.IndexByte(s[j:phase], '}'); k < 0 {
				return j
			}
			brace = j + k
		}
	}
	return -1
}

// members reads members of an object from i on; then goes on with what stands
// behind its closing brace.
func (m *mender) members(i int, args bool, then func(int) bool) bool {
	if m.tries++; m.tries > maxRepairTries {
		return false
	}
	i = skipSpace(m.b, i, m.end)
	if i < m.end && m.b[i] == '}' {
		return then(i + 1)
	}
	if i >= m.end || m.b[i] != '"' {
		return false
	}
	q, _ := stringEnd(m.b, i+1, m.end)
	if q < 0 || !m.spend(q-i) {
		return false
	}
	key := m.b[i+1 : q]
	i = skipSpace(m.b, q+1, m.end)
	if i >= m.end || m.b[i] != ':' || !m.known(key, args) || m.trust < trustAll && m.used(key) {
		return false
	}
	i = skipSpace(m.b, i+1, m.end)
	if i >= m.end {
		return false
	}
	n := len(m.parts)
	if !args && string(key) == "args" && m.b[i] == '{' {
		m.parts = append(m.parts, part{key: key, args: 1})
		if m.members(i+1, true, func(j int) bool {
			k := len(m.parts)
			m.parts = append(m.parts, part{args: -1})
			if m.after(j, false, then) {
				return true
			}
			m.parts = m.parts[:k]
			return false
		}) {
			return true
		}
		m.parts = m.parts[:n]
		return false
	}
	switch m.b[i] {
	case '"':
		return m.closers(i+1, '"', func(q int) bool {
			if !plausible(key, m.b[i+1:q], args) {
				return false
			}
			m.parts = append(m.parts[:n], part{key: key, val: m.b[i+1 : q], text: true})
			return m.after(q+1, args, then)
		})
	case '[', '{':
		e := skipNested(m.b, i, m.end)
		if e > 0 {
			m.parts = append(m.parts[:n], part{key: key, val: m.b[i:e]})
			if m.after(e, args, then) {
				return true
			}
		}
		if e < 0 {
			e = m.end
		}
		if !m.spend(e - i) {
			return false
		}
		return m.closers(i+1, m.b[i]+2, func(q int) bool { // ] and } stand two behind [ and {
			m.parts = append(m.parts[:n], part{key: key, val: m.b[i : q+1], raw: true})
			return m.after(q+1, args, then)
		})
	}
	e := skipWord(m.b, i, m.end)
	if e < 0 {
		return false
	}
	m.parts = append(m.parts[:n], part{key: key, val: m.b[i:e]})
	return m.after(e, args, then)
}

// closers tries every c from i on.
func (m *mender) closers(i int, c byte, try func(int) bool) bool {
	n := len(m.parts)
	for i < m.end {
		k := bytes.IndexByte(m.b[i:m.end], c)
		if k < 0 {
			m.spend(m.end - i)
			return false
		}
		m.tries++
		if !m.spend(k+1) || m.tries > maxRepairTries {
			return false
		}
		if try(i + k) {
			return true
		}
		m.parts = m.parts[:n]
		i += k + 1
	}
	return false
}

// spend counts bytes that were looked at and reports whether more may be.
func (m *mender) spend(n int) bool {
	m.work -= n
	return m.work > 0
}

// after reads what stands behind a value.
func (m *mender) after(i int, args bool, then func(int) bool) bool {
	i = skipSpace(m.b, i, m.end)
	if i >= m.end {
		return false
	}
	switch m.b[i] {
	case ',':
		return m.members(i+1, args, then)
	case '}':
		return then(i + 1)
	}
	return false
}

func (m *mender) write() (o []byte, flaws []flaw) {
	o = append(o, '{')
	for _, p := range m.parts {
		if p.args < 0 {
			o = append(o, '}')
			continue
		}
		if c := o[len(o)-1]; c != '{' {
			o = append(o, ',')
		}
		k, f := unescape(nil, p.key)
		if f != 0 {
			flaws = append(flaws, f)
		}
		o = append(appendQuoted(o, k), ':')
		switch {
		case p.args > 0:
			o = append(o, '{')
		case p.text:
			f := flaw(0)
			if closing(p.val, 0) >= 0 {
				f = flawQuote
			}
			t, g := unescape(nil, p.val)
			if f |= g; f != 0 {
				flaws = append(flaws, f)
			}
			o = appendQuoted(o, t)
		case p.raw:
			t, g := unescape(nil, p.val)
			flaws = append(flaws, g|flawQuote)
			o = appendQuoted(o, t)
		default:
			o = append(o, p.val...)
		}
	}
	return append(o, '}'), flaws
}
