package nsight

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"tracelake/schema"
)

// Types of NVTX events.
const (
	nvtxCategory  = 33
	nvtxMark      = 34
	nvtxPushPop   = 59
	nvtxStartEnd  = 60
	nvtxtCategory = 64 // imported from NVTX text logs, as those up to 71
	nvtxtMark     = 65
	nvtxtPushPop  = 70
	nvtxtRange    = 71
	nvtxDomain    = 75
)

// scoped is an ID that counts within a process and an NVTX domain. Rows that name
// no process are those of one.
type scoped struct{ process, domain, id int64 }

// nvtx holds the ranges and the marks of a report.
type nvtx struct {
	ranges, marks *read
	n             int
}

// nvtxWants are the columns of NVTX_EVENTS in the order of the constants below.
var nvtxWants = []want{
	{"start", integer},
	{"end", integer},
	{"eventType", integer},
	{"globalTid", integer},
	{"endGlobalTid", integer},
	{"domainId", integer},
	{"category", integer},
	{"text", text},
	{"textId", integer},
	{"jsonText", text},
	{"jsonTextId", integer},
	{"uint64Value", integer},
	{"int64Value", integer},
	{"doubleValue", real},
	{"uint32Value", integer},
	{"int32Value", integer},
	{"floatValue", real},
}

const (
	nvStart = iota
	nvEnd
	nvType
	nvTID
	nvEndTID
	nvDomain
	nvCategory
	nvText
	nvTextID
	nvJSON
	nvJSONID
	nvNumber // six columns of numbers
)

// readNVTX reads NVTX_EVENTS: ranges and marks stay in memory, and domains and
// categories give them names.
func (r *reader) readNVTX(ctx context.Context) (*nvtx, error) {
	wants := append(append([]want(nil), nvtxWants[:nvNumber]...), want{"payload", text}, want{"index", integer})
	ranges, marks := r.newCollector(wants, false), r.newCollector(wants, false)
	r.domains, r.categories = map[scoped]label{}, map[scoped]label{}
	out := &nvtx{}
	unread := map[int64]int64{}
	var payload, index []int64
	keepRanges, keepMarks, keep := []int32{}, []int32{}, []int32{} // never nil, which would keep every row
	err := r.scan(ctx, tableNVTX, nvtxWants, func(b *batch) error {
		keepRanges, keepMarks, keep = keepRanges[:0], keepMarks[:0], keep[:0]
		payload, index = payload[:0], index[:0]
		if b.cols[nvType] == nil {
			b.cols[nvType] = typesOfNVTX(b)
		}
		for i := range b.n {
			payload = append(payload, schema.Null)
			index = append(index, r.events+int64(out.n+i))
			switch t := cell(b, nvType, i); t {
			case nvtxPushPop, nvtxStartEnd, nvtxtPushPop, nvtxtRange:
				keepRanges = append(keepRanges, int32(i))
			case nvtxMark, nvtxtMark:
				keepMarks = append(keepMarks, int32(i))
			case nvtxCategory, nvtxtCategory, nvtxDomain:
				r.nameNVTX(b, i)
				continue
			default:
				if !slices.Contains(nvtxSilent, t) {
					unread[t]++
				}
				continue
			}
			keep = append(keep, int32(i))
			if s := payloadOf(b, i); s != "" {
				payload[i] = b.texts.put([]byte(s))
			}
		}
		out.n += b.n
		rows := &batch{n: b.n, texts: b.texts, cols: append(append([][]int64(nil), b.cols[:nvNumber]...), payload, index)}
		// In the order of the rows, or the numbers of texts, and with them the digest,
		// would depend on which ranges and marks come in one batch.
		if err := ranges.number(rows, keep); err != nil {
			return err
		}
		if err := ranges.add(rows, keepRanges); err != nil {
			return err
		}
		return marks.add(rows, keepMarks)
	})
	if err != nil {
		return nil, err
	}
	fill := func(c *collector, name string) (*read, error) {
		t := &read{n: c.n, cols: map[string]*stored{}}
		cols, err := c.finish(name)
		for j, s := range cols {
			t.cols[wants[j].name] = &s
		}
		return t, err
	}
	if out.ranges, err = fill(ranges, "ranges"); err != nil {
		return nil, err
	}
	if out.marks, err = fill(marks, "marks"); err != nil {
		return nil, err
	}
	for _, t := range slices.Sorted(maps.Keys(unread)) {
		what := "without a type"
		if t != schema.Null {
			what = fmt.Sprintf("of type %d", t)
		}
		r.note(schema.UnreadTable, unread[t], "NVTX_EVENTS: rows "+what+", which is neither a range nor a mark that is known, are left out")
	}
	r.events += int64(out.n)
	r.see(out.ranges.col("globalTid"))
	r.see(out.marks.col("globalTid"))
	return out, nil
}

// nvtxSilent are types that hold neither a range nor a mark: names of threads,
// processes, files and CUDA objects, and the end of a domain.
var nvtxSilent = []int64{39, 72, 73, 74, 76, 97, 98, 99}

// typesOfNVTX are the types of rows whose table has no such column: what ends is a
// range and what does not is a mark.
func typesOfNVTX(b *batch) []int64 {
	out := make([]int64, b.n)
	for i := range out {
		if out[i] = nvtxPushPop; cell(b, nvEnd, i) == schema.Null {
			out[i] = nvtxMark
		}
	}
	return out
}

func cell(b *batch, col, i int) int64 {
	if b.cols[col] == nil {
		return schema.Null
	}
	return b.cols[col][i]
}

// label is the name of a domain or category: a text, or the ID of a string.
type label struct {
	text string
	id   int64
}

// nameNVTX remembers the name of a domain or category.
func (r *reader) nameNVTX(b *batch, i int) {
	name := label{id: schema.Null}
	if t := cell(b, nvText, i); t != schema.Null {
		name.text = b.texts.list[t]
	}
	if id := cell(b, nvTextID, i); name.text == "" && id != schema.Null {
		r.refs.add(id)
		name.id = id
	}
	tid := cell(b, nvTID, i)
	if name == (label{id: schema.Null}) {
		return
	}
	at := scoped{processKey(tid), max(0, cell(b, nvDomain, i)), 0}
	if cell(b, nvType, i) == nvtxDomain {
		r.domains[at] = name
		return
	}
	at.id = cell(b, nvCategory, i)
	r.categories[at] = name
}

// payloadOf writes the number that a row carries. Where several columns hold
// one, as in exports that write 0 for a missing value, zeros are none.
func payloadOf(b *batch, i int) string {
	found, several := -1, false
	for c := nvNumber; c < len(nvtxWants); c++ {
		v := cell(b, c, i)
		if v == schema.Null || v == 0 && found >= 0 {
			several = several || v == 0
			continue
		}
		several = several || found >= 0
		found = c
	}
	if found < 0 || several && b.cols[found][i] == 0 {
		return ""
	}
	v := b.cols[found][i]
	switch nvtxWants[found].name {
	case "uint64Value":
		return strconv.FormatUint(uint64(v), 10)
	case "doubleValue", "floatValue":
		return strconv.FormatFloat(math.Float64frombits(uint64(v)), 'g', -1, 64)
	}
	return strconv.FormatInt(v, 10)
}

// nvtxName is the text of a range or mark, else the registered string.
func (r *reader) nvtxName(t *read) filler {
	return combined(t.col("text"), t.col("textId"), func(inline, id int64) int64 {
		if inline != schema.Null && r.names.list[inline] != "" {
			return inline
		}
		if id != schema.Null {
			if n := r.string(id); n != schema.Null {
				return n
			}
		}
		return inline
	})
}

func (r *reader) nvtxPayload(t *read) filler {
	number, json := t.col("payload"), combined(t.col("jsonText"), t.col("jsonTextId"), func(inline, id int64) int64 {
		if inline != schema.Null && r.names.list[inline] != "" {
			return inline
		}
		if id != schema.Null {
			return r.string(id)
		}
		return schema.Null
	})
	if json == nil {
		return plain(number)
	}
	return func(out []int64) {
		json(out)
		nums := make([]int64, len(out))
		number.fill(nums)
		for i, v := range nums {
			if out[i] == schema.Null {
				out[i] = v
			}
		}
	}
}

// resolved returns the number of a label.
func (r *reader) resolved(l label) int64 {
	if l.id != schema.Null {
		return r.string(l.id)
	}
	return r.names.put(l.text)
}

func (r *reader) nvtxDomainName(t *read) filler {
	return combined(t.col("globalTid"), t.col("domainId"), func(tid, domain int64) int64 {
		if domain == schema.Null || domain == 0 {
			return schema.Null
		}
		if n, ok := r.domains[scoped{processKey(tid), domain, 0}]; ok {
			return r.resolved(n)
		}
		return r.names.put("domain " + strconv.FormatInt(domain, 10))
	})
}

func (r *reader) nvtxCategoryName(t *read) filler {
	category := t.col("category")
	if !category.some() {
		return nil
	}
	return func(out []int64) {
		tid, domain := make([]int64, len(out)), make([]int64, len(out))
		t.col("globalTid").fill(tid)
		t.col("domainId").fill(domain)
		category.fill(out)
		for i, c := range out {
			if c == schema.Null || c == 0 {
				out[i] = schema.Null
				continue
			}
			if n, ok := r.categories[scoped{processKey(tid[i]), max(0, domain[i]), c}]; ok {
				out[i] = r.resolved(n)
				continue
			}
			out[i] = r.names.put("category " + strconv.FormatInt(c, 10))
		}
	}
}

// rangeEnd is the end of a range: none where it was never closed. Exports
// without nulls write 0 for that.
func rangeEnd(start, end int64) int64 {
	if end == 0 && start > 0 {
		return schema.Null
	}
	return end
}

// rangeRows makes the rows of ranges.
func (r *reader) rangeRows(v *nvtx) {
	rows := &Rows{Table: &schema.TableRanges, names: r.names}
	r.res.Ranges = rows
	t := v.ranges
	if t.n == 0 {
		return
	}
	types := map[int64]int64{}
	for i, id := range []int64{nvtxPushPop, nvtxStartEnd, nvtxtPushPop, nvtxtRange} {
		types[id] = r.names.put([]string{"nvtx_push_pop", "nvtx_start_end", "nvtxt_push_pop", "nvtxt_range"}[i])
	}
	tid, zero := t.col("globalTid"), constant(0)
	rows.add(t.n, map[string]filler{
		"event_index": plain(t.col("index")), "category": mapped(t.col("eventType"), func(v int64) int64 { return types[v] }),
		"name": r.nvtxName(t), "domain": eager(t.n, r.nvtxDomainName(t)), "nvtx_category": eager(t.n, r.nvtxCategoryName(t)), "payload": r.nvtxPayload(t),
		"start_ns": plain(t.col("start")), "dur_ns": combined(t.col("end"), t.col("start"), func(end, start int64) int64 { return duration(start, rangeEnd(start, end)) }),
		"pid": mapped(tid, processID), "tid": mapped(tid, threadID), "global_pid": mapped(tid, processKey), "on_gpu": zero,
		"end_tid": combined(t.col("endGlobalTid"), tid, func(end, begin int64) int64 {
			if end == schema.Null || end == 0 || end == begin {
				return schema.Null
			}
			return threadID(end)
		}),
	})
	r.res.Rows[rows.Table.Name] = int64(rows.n)
	for id, n := range r.counts(t.col("eventType"), t.n) {
		r.res.Kinds[r.names.list[types[id]]] += n
	}
	open := int64(0)
	durations := rows.Values("dur_ns")
	for i, start := range rows.Values("start_ns") {
		switch d := durations[i]; {
		case d != schema.Null:
			r.interval(start, start+d)
		case r.moment(start):
			open++
		}
	}
	if open > 0 {
		r.note(schema.OpenRange, open, "NVTX ranges were never closed")
	}
}
