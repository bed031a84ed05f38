package query

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// maxCell bounds the width of a cell in characters; kernel names run to
// thousands.
const maxCell = 80

// printTable writes columns padded to their widest cell, numbers to the right.
func printTable(w io.Writer, r Rows) error {
	cols := r.Columns()
	if n := len(cols); n > 0 && cols[n-1].Name == "explain_value" {
		return printPlan(w, r)
	}
	width := make([]int, len(cols))
	right := make([]bool, len(cols))
	for i, c := range cols {
		width[i] = utf8.RuneCountInString(c.Name)
		right[i] = isNumeric(c.Type)
	}
	var cells [][]string
	err := each(r, func(values []any) error {
		line := make([]string, len(values))
		for i, v := range values {
			// A lone column may hold a plan, or a text that was asked for in full.
			line[i] = cell(text(v), len(cols) == 1)
			width[i] = max(width[i], utf8.RuneCountInString(line[i]))
		}
		cells = append(cells, line)
		return nil
	})
	if err != nil {
		return err
	}
	head := make([]string, len(cols))
	rule := make([]string, len(cols))
	for i, c := range cols {
		head[i] = c.Name
		rule[i] = strings.Repeat("-", min(width[i], maxCell))
	}
	for _, line := range append([][]string{head, rule}, cells...) {
		if _, err := io.WriteString(w, aligned(line, width, right)); err != nil {
			return err
		}
	}
	noun := "rows"
	if len(cells) == 1 {
		noun = "row"
	}
	_, err = fmt.Fprintf(w, "(%d %s)\n", len(cells), noun)
	return err
}

// printPlan writes the plans that EXPLAIN returns, which are drawings.
func printPlan(w io.Writer, r Rows) error {
	return each(r, func(values []any) error {
		_, err := fmt.Fprintln(w, cell(text(values[len(values)-1]), true))
		return err
	})
}

func aligned(line []string, width []int, right []bool) string {
	var b strings.Builder
	for i, s := range line {
		if i > 0 {
			b.WriteString("  ")
		}
		pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(s))
		if right[i] {
			b.WriteString(pad + s)
		} else {
			b.WriteString(s + pad)
		}
	}
	return strings.TrimRight(b.String(), " ") + "\n"
}

// cell makes a text fit into a line, unless it may be whole. It escapes what
// would steer a terminal, because names come from files that anybody may have
// written.
func cell(s string, whole bool) string {
	cut := !whole && utf8.RuneCountInString(s) > maxCell
	var b strings.Builder
	n := 0
	for _, c := range s {
		if cut && n >= maxCell-1 {
			b.WriteRune('…')
			break
		}
		switch {
		case c == '\n' && whole:
			b.WriteRune(c)
		case c < 0x20 || c >= 0x7f && c < 0xa0:
			fmt.Fprintf(&b, `\x%02x`, c)
			n += 3
		default:
			b.WriteRune(c)
		}
		n++
	}
	return b.String()
}

func isNumeric(typ string) bool {
	switch typ {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT",
		"UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE":
		return true
	}
	return strings.HasPrefix(typ, "DECIMAL")
}
