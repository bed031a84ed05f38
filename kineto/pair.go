package kineto

import (
	"math"
	"sort"
	"strconv"

	"tracelake/schema"
)

// thread is a thread as events name it: numbers, or strings of the file.
type thread struct{ pid, pidText, tid, tidText int64 }

// pairEvents turns begin and end events into duration events. Within a thread
// they are taken in order of time, equal times in source order, and paired
// like brackets. What has no partner is kept without a duration.
func (c *committer) pairEvents() error {
	r := c.keep[tabBeginEnd]
	if r.n == 0 {
		return nil
	}
	n := r.n
	ts, phase := r.Values("start_ns"), r.Values(phaseColumn)
	index, args := r.Values("event_index"), r.Values("args_json")
	threads := make([]thread, n)
	for i, col := range []string{"pid", "pid_text", "tid", "tid_text"} {
		for k, v := range r.Values(col) {
			*[]*int64{&threads[k].pid, &threads[k].pidText, &threads[k].tid, &threads[k].tidText}[i] = v
		}
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(a, b int) bool { return ts[order[a]] < ts[order[b]] })
	end := make([]int, n) // row of the end event, or -1
	open := map[thread][]int{}
	for i := range end {
		end[i] = -1
	}
	paired := make([]bool, n)
	for _, i := range order {
		th := threads[i]
		if r.Name(phase[i]) == "B" {
			open[th] = append(open[th], i)
			continue
		}
		if s := open[th]; len(s) > 0 {
			b := s[len(s)-1]
			open[th] = s[:len(s)-1]
			end[b], paired[i], paired[b] = i, true, true
		}
	}
	t := &tableBatch{cols: make([]column, len(specs[tabCPU].table.Columns))}
	spec := &specs[tabCPU]
	text := func(s string) int64 { return int64(c.names.put([]byte(s))) }
	// What the end event says counts where the begin event does not say it, but for
	// what makes them a pair.
	made := map[string]bool{"dur_ns": true, "end_ns": true, "time_flag": true, "pairing": true, "end_index": true, "args_json": true}
	ofBegin := map[string]bool{"event_index": true, "start_ns": true, "pid": true, "pid_text": true, "tid": true, "tid_text": true}
	differ := map[int][]endValue{} // by row of the begin event
	var buf []int64                // one column at a time: there may be millions of rows
	for ci, col := range spec.table.Columns {
		if made[col.Name] || ofBegin[col.Name] || !r.Has(col.Name) {
			continue
		}
		buf = r.ValuesInto(buf, ci)
		for b, e := range end {
			if e >= 0 && buf[e] != schema.Null && buf[b] != schema.Null && buf[b] != buf[e] {
				differ[b] = append(differ[b], endValue{ci, buf[e]})
			}
		}
	}
	emit := make([]int32, n) // row of a source row, or -1
	for i := range n {
		begin := r.Name(phase[i]) == "B"
		if paired[i] && !begin {
			emit[i] = -1
			continue
		}
		row := t.n
		t.n++
		emit[i] = row
		switch {
		case paired[i]:
			e := end[i]
			t.cols[spec.c("pairing")].put(row, text("paired"))
			t.cols[spec.c("end_index")].put(row, index[e])
			if ts[i] != schema.Null && ts[e] != schema.Null {
				t.cols[colOf[tabCPU].dur].put(row, ts[e]-ts[i])
				t.cols[colOf[tabCPU].end].put(row, ts[e])
			} else {
				t.cols[colOf[tabCPU].flag].put(row, text("bad_time"))
			}
		case begin:
			t.cols[spec.c("pairing")].put(row, text("no_end"))
			t.cols[colOf[tabCPU].flag].put(row, text("missing_duration"))
			c.res.Diags.Add(schema.UnpairedBegin, schema.Null, index[i], 1, "begin event without an end")
		default:
			t.cols[spec.c("pairing")].put(row, text("no_begin"))
			t.cols[colOf[tabCPU].flag].put(row, text("missing_duration"))
			c.res.Diags.Add(schema.UnpairedEnd, schema.Null, index[i], 1, "end event without a begin")
		}
		a := args[i]
		if e := end[i]; e >= 0 {
			switch id := c.endArgs(args[e], differ[i]); {
			case id == schema.Null:
			case a == schema.Null && differ[i] == nil:
				a = id
			default:
				a = c.joinArgs(a, id)
			}
		}
		if a != schema.Null {
			t.cols[spec.c("args_json")].put(row, a)
		}
	}
	for ci, col := range spec.table.Columns {
		if made[col.Name] || !r.Has(col.Name) {
			continue
		}
		buf = r.ValuesInto(buf, ci)
		for i, row := range emit {
			if row < 0 {
				continue
			}
			v := buf[i]
			if v == schema.Null && end[i] >= 0 && !ofBegin[col.Name] {
				v = buf[end[i]]
			}
			if v != schema.Null {
				t.cols[ci].put(row, v)
			}
		}
	}
	r.Drop()
	c.gen++
	if c.p.o.wants(tabCPU) {
		c.tables[tabCPU].add(t, c.names, tabCPU, 0, c.baseNS, c.gen)
	}
	c.res.Rows[spec.table.Name] += int64(t.n)
	return nil
}

// endValue is what an end event says in a column where its begin event says otherwise.
type endValue struct {
	col int
	v   int64
}

// endArgs returns the arguments of an end event, with what it says otherwise than its
// begin event; schema.Null for none.
func (c *committer) endArgs(args int64, differ []endValue) int64 {
	if len(differ) == 0 {
		return args
	}
	o := []byte{'{'}
	for _, d := range differ {
		s := slotOfColumn[d.col]
		o = appendKey(o, slots[s].name, !slots[s].arg)
		switch slots[s].kind {
		case kindText:
			o = appendQuoted(o, c.names.at(uint32(d.v)))
		case kindJSON:
			o = append(o, c.names.at(uint32(d.v))...)
		case kindFloat:
			o = appendFloat(o, math.Float64frombits(uint64(d.v)))
		default:
			o = strconv.AppendInt(o, d.v, 10)
		}
	}
	if args != schema.Null {
		if rest := c.names.at(uint32(args))[1:]; len(rest) > 1 {
			o = append(append(o, ','), rest[:len(rest)-1]...)
		}
	}
	return int64(c.names.put(append(o, '}')))
}

// slotOfColumn is the slot that a column of cpu_events holds.
var slotOfColumn = map[int]slot{}

// joinArgs joins the arguments of a begin event and its end event.
func (c *committer) joinArgs(begin, end int64) int64 {
	o := []byte{'{'}
	if begin != schema.Null {
		b := c.names.at(uint32(begin))
		o = append(o[:0], b[:len(b)-1]...)
	}
	o = append(appendKey(o, "end_args", true), c.names.at(uint32(end))...)
	return int64(c.names.put(append(o, '}')))
}
