package btree

import (
	"slices"
	"strings"
)

// Table is a table of a database.
type Table struct {
	Name    string
	Columns []string
	// Unsupported tables are left to SQLite.
	Unsupported bool

	root     uint32
	rowid    int    // column that stands for the rowid, -1 for none
	defaults []bool // columns with a default value, which short records take
	integers []bool // columns of type INTEGER
}

// parseTable reads a CREATE TABLE statement as SQLite stores it. What it does
// not understand is unsupported.
func parseTable(sql string) *Table {
	t := &Table{rowid: -1}
	p := lexer{s: sql}
	if !p.word("CREATE") {
		return t.give()
	}
	if !p.word("TABLE") { // TEMP, VIRTUAL
		return t.give()
	}
	for { // the name, with a schema before it or not
		tok := p.next()
		if tok.kind == 0 || tok.is("AS") {
			return t.give()
		}
		if tok.kind == '(' {
			break
		}
	}
	var primary []string // of a table constraint
	for {
		def, end := p.definition()
		if len(def) == 0 {
			return t.give()
		}
		if name, ok := constraint(def); ok {
			primary = append(primary, name...)
		} else if !t.column(def) {
			return t.give()
		}
		if end == ')' {
			break
		}
		if end != ',' || len(t.Columns) > maxColumns {
			return t.give()
		}
	}
	for tok := p.next(); tok.kind != 0; tok = p.next() {
		if tok.is("WITHOUT") {
			return t.give()
		}
	}
	if len(primary) > 0 {
		if len(primary) > 1 && primary[1] == "" {
			return t.give()
		}
		t.primary(primary)
	}
	return t
}

func (t *Table) give() *Table {
	t.Unsupported = true
	return t
}

type token struct {
	kind byte // 'w' word, 'q' quoted name, 's' text or number, or the character itself; 0 at the end
	text string
}

func (t token) is(word string) bool { return t.kind == 'w' && strings.EqualFold(t.text, word) }

// lexer cuts SQL into tokens.
type lexer struct {
	s  string
	at int
}

func (p *lexer) word(w string) bool { return p.next().is(w) }

func (p *lexer) next() token {
	for p.at < len(p.s) {
		rest := p.s[p.at:]
		switch c := rest[0]; {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			p.at++
		case strings.HasPrefix(rest, "--"):
			p.skip(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			p.skip(rest, "*/")
		case c == '"' || c == '`' || c == '\'':
			return p.quoted(c, c)
		case c == '[':
			return p.quoted('[', ']')
		case isWord(c):
			n := 1
			for n < len(rest) && isWord(rest[n]) {
				n++
			}
			p.at += n
			if c >= '0' && c <= '9' {
				return token{'s', rest[:n]}
			}
			return token{'w', rest[:n]}
		default:
			p.at++
			return token{c, rest[:1]}
		}
	}
	return token{}
}

func (p *lexer) skip(rest, end string) {
	if i := strings.Index(rest[2:], end); i >= 0 {
		p.at += 2 + i + len(end)
	} else {
		p.at = len(p.s)
	}
}

func (p *lexer) quoted(open, end byte) token {
	var b strings.Builder
	for p.at++; p.at < len(p.s); p.at++ {
		if c := p.s[p.at]; c != end {
			b.WriteByte(c)
			continue
		}
		if open != '[' && p.at+1 < len(p.s) && p.s[p.at+1] == end { // doubled
			b.WriteByte(end)
			p.at++
			continue
		}
		p.at++
		kind := byte('q')
		if open == '\'' {
			kind = 's'
		}
		return token{kind, b.String()}
	}
	return token{}
}

func isWord(c byte) bool {
	return c == '_' || c == '$' || c >= 0x80 || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// definition returns the tokens up to the next comma or the closing bracket of
// the table.
func (p *lexer) definition() (def []token, end byte) {
	depth := 0
	for {
		t := p.next()
		switch {
		case t.kind == 0:
			return nil, 0
		case t.kind == '(':
			depth++
		case t.kind == ')' && depth == 0:
			return def, ')'
		case t.kind == ')':
			depth--
		case t.kind == ',' && depth == 0:
			return def, ','
		}
		def = append(def, t)
	}
}

// constraint recognises a constraint of the table, and returns the columns of a
// primary key: a second, empty one where there are several or more is said.
func constraint(def []token) (primary []string, ok bool) {
	d := def
	for d[0].is("CONSTRAINT") && len(d) > 2 {
		d = d[2:]
	}
	switch {
	case d[0].is("FOREIGN"), d[0].is("UNIQUE"), d[0].is("CHECK"):
		// The comma before the next constraint may be left out.
		if slices.ContainsFunc(d, func(t token) bool { return t.is("PRIMARY") }) {
			return []string{"", ""}, true
		}
		return nil, true
	case d[0].is("PRIMARY") && len(d) > 3 && d[1].is("KEY") && d[2].kind == '(':
		primary = []string{d[3].text}
		if len(d) < 5 || d[4].kind != ')' {
			primary = append(primary, "")
		}
		return primary, true
	}
	return nil, false
}

// column adds a column, and reports whether its definition is understood.
func (t *Table) column(def []token) bool {
	name := def[0]
	if name.kind != 'w' && name.kind != 'q' && name.kind != 's' {
		return false
	}
	// Some versions take a quoted INTEGER for the type that stands for the rowid.
	for _, d := range def[1:] {
		if !plainWord(d) || d.kind == '(' {
			break
		}
		if d.kind != 'w' {
			return false
		}
	}
	integer := len(def) > 1 && def[1].is("INTEGER") && (len(def) == 2 || !plainWord(def[2]))
	primary, byDefault := false, false
	depth := 0
	for i := 1; i < len(def); i++ {
		d := def[i]
		switch {
		case d.kind == '(':
			depth++
		case d.kind == ')':
			depth--
		case depth > 0:
		case d.is("GENERATED"), d.is("AS"):
			return false
		case d.is("DEFAULT"):
			byDefault = true
		case d.is("PRIMARY"):
			primary = true
		case d.is("DESC") && primary:
			return false
		}
	}
	if primary && integer {
		t.rowid = len(t.Columns)
	}
	t.Columns = append(t.Columns, name.text)
	t.defaults = append(t.defaults, byDefault)
	t.integers = append(t.integers, integer)
	return true
}

// plainWord reports whether a token goes on with the name of a type.
func plainWord(t token) bool {
	if t.kind == '(' {
		return true
	}
	if t.kind != 'w' {
		return t.kind == 'q' || t.kind == 's'
	}
	for _, k := range []string{"CONSTRAINT", "PRIMARY", "NOT", "NULL", "UNIQUE", "CHECK", "DEFAULT", "COLLATE", "REFERENCES", "GENERATED", "AS"} {
		if t.is(k) {
			return false
		}
	}
	return true
}

// primary applies a primary key that is a constraint of the table.
func (t *Table) primary(key []string) {
	for i, c := range t.Columns {
		if len(key) == 1 && strings.EqualFold(c, key[0]) && t.integers[i] {
			t.rowid = i
		}
	}
}
