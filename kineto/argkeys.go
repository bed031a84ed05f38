package kineto

// ArgKey says which argument of an event a column holds.
type ArgKey struct {
	Column, Key string
	JSON        bool // the column holds JSON and not a plain value
}

// ArgKeys lists the columns of a table that hold one argument each, for those
// who write events from rows. Sizes in three columns (grid, block) are not
// among them.
func ArgKeys(table string) (out []ArgKey) {
	for id := range specs {
		s := &specs[id]
		if s.table.Name != table {
			continue
		}
		for x := slotFirstArg; x < len(slots); x++ {
			if c := s.slotCol[x]; c >= 0 && !s.special.has(x) && x != slotArgName && x != slotArgLabels {
				out = append(out, ArgKey{s.table.Columns[c].Name, slots[x].name, slots[x].kind == kindJSON})
			}
		}
		break
	}
	return out
}

// AppendQuoted appends a text as a JSON string.
func AppendQuoted(dst []byte, s string) []byte { return appendQuoted(dst, []byte(s)) }
