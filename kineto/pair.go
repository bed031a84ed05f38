package kineto

import (
	"sort"

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
	text := func(s string) int64 { id, _ := c.names.put([]byte(s)); return int64(id) }
	emit := map[int]int32{} // source row -> row
	for i := range n {
		begin := r.Name(phase[i]) == "B"
		if paired[i] && !begin {
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
		if a := c.pairedArgs(args[i], end[i], args); a != schema.Null {
			t.cols[spec.c("args_json")].put(row, a)
		}
	}
	own := map[string]bool{"trace_id": true, "dur_ns": true, "end_ns": true, "time_flag": true, "pairing": true, "end_index": true, "args_json": true}
	for ci, col := range spec.table.Columns {
		if own[col.Name] || !r.Has(col.Name) {
			continue
		}
		v := r.ValuesAt(ci)
		for i := range n {
			if row, ok := emit[i]; ok && v[i] != schema.Null {
				t.cols[ci].put(row, v[i])
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

// pairedArgs joins the arguments of a begin event and its end event.
func (c *committer) pairedArgs(begin int64, end int, args []int64) int64 {
	if end < 0 || args[end] == schema.Null {
		return begin
	}
	if begin == schema.Null {
		return args[end]
	}
	b, e := c.names.at(uint32(begin)), c.names.at(uint32(args[end]))
	o := append([]byte(nil), b[:len(b)-1]...)
	o = append(append(o, `,"event.end_args":`...), e...)
	id, _ := c.names.put(append(o, '}'))
	return int64(id)
}
