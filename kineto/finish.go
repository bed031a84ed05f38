package kineto

import (
	"math"
	"strconv"

	"tracelake/schema"
)

// kindCount counts events of one phase and category before they reach the
// batch's map.
type kindCount struct {
	key kindKey
	n   int64
}

func (d *decoder) countKind(k kindKey) {
	c := &d.kcache[(k.ph*31+k.cat)%uint32(len(d.kcache))]
	if c.key != k {
		d.flushKind(c)
		c.key = k
	}
	c.n++
}

func (d *decoder) flushKind(c *kindCount) {
	if c.n > 0 {
		if _, ok := d.out.kinds[c.key]; ok || len(d.out.kinds) < maxKindsCounted {
			d.out.kinds[c.key] += c.n
		}
	}
	c.n = 0
}

// flushKinds completes the batch's counts.
func (d *decoder) flushKinds() {
	for i := range d.kcache {
		d.flushKind(&d.kcache[i])
	}
}

// constant returns the number of a fixed string in the batch.
func (d *decoder) constant(s string) int64 {
	id, ok := d.consts[s]
	if !ok {
		id = d.out.strs.put([]byte(s))
		d.consts[s] = id
	}
	return int64(id)
}

// finish files the event at hand, which is complete, under its table.
func (d *decoder) finish() {
	out := d.out
	for _, n := range d.pend {
		out.add(n.code, int(n.offset), n.message)
	}
	if d.stale {
		d.current()
	}
	if d.set == (slotSet{}) && len(d.other) == 0 {
		out.add(schema.EmptyEvent, d.start, "empty object in the event array")
		out.members++
		return
	}
	ph, cat := noString, noString
	if d.set.has(slotPh) {
		ph = uint32(d.val[slotPh])
	}
	if d.set.has(slotCat) {
		cat = uint32(d.val[slotCat])
	}
	d.countKind(kindKey{ph, cat})
	switch d.phaseOf(ph) {
	case 'X':
		d.finishDuration(cat)
	case 'B', 'E':
		d.finishTimed(tabBeginEnd)
	case 'C':
		d.finishCounter()
	case 's', 't', 'f':
		d.finishTimed(tabFlows)
	case 'M':
		d.finishTimed(tabMetadata)
	case 0:
		out.add(schema.NoPhase, d.start, "event without ph")
		d.finishInstant()
	default:
		d.finishInstant()
	}
	out.members++
}

// has reports whether a slot has a value, of processes and threads also text.
func (d *decoder) has(s slot) bool {
	return d.set.has(s) || slots[s].kind == kindWho && d.set.has(s+1)
}

// phaseOf returns the letter of a phase, 0 for none and '?' for others.
func (d *decoder) phaseOf(id uint32) byte {
	if id == noString {
		return 0
	}
	for int(id) >= len(d.phase) {
		d.phase = append(d.phase, 0xff)
	}
	if d.phase[id] == 0xff {
		d.phase[id] = '?'
		if s := d.out.strs.at(id); len(s) == 1 {
			d.phase[id] = s[0]
		}
	}
	return d.phase[id]
}

func (d *decoder) classOf(id uint32) class {
	if int(id) < len(d.class) && d.class[id] != classUnknown {
		return d.class[id]
	}
	return d.classAnew(id)
}

func (d *decoder) classAnew(id uint32) class {
	if id == noString {
		return classOther
	}
	for int(id) >= len(d.class) {
		d.class = append(d.class, classUnknown)
	}
	d.class[id] = classify(string(d.out.strs.at(id)))
	return d.class[id]
}

// indexColumn is the position of event_index in every table.
const indexColumn = 1

// addRow adds a row for the event at hand.
func (d *decoder) addRow(t *tableBatch) int32 {
	row := t.n
	t.n++
	t.cols[indexColumn].put(row, d.out.members)
	return row
}

// finishDuration files a duration event.
func (d *decoder) finishDuration(cat uint32) {
	c := d.classOf(cat)
	tab := tabCPU
	switch c {
	case classKernel, classMemcpy, classMemset:
		tab = tabGPU
	case classLaunch:
		tab = tabLaunches
	case classRange, classGPURange:
		tab = tabRanges
	case classOperator:
		if d.marksStep() {
			tab = tabRanges
		}
	}
	spec, t := &specs[tab], &d.out.tables[tab]
	row := d.addRow(t)
	flag := ""
	start, dur := d.val[slotTS], d.val[slotDur]
	hasDur := d.set.has(slotDur)
	if !hasDur {
		dur = 0
	}
	if d.set.has(slotTS) {
		t.cols[colOf[tab].start].put(row, start)
		d.out.times.see(start, max(dur, 0), hasDur)
	} else {
		flag = "bad_time"
		d.noTime()
	}
	switch {
	case !hasDur:
		if flag == "" {
			flag = "missing_duration"
		}
		d.out.add(schema.MissingDur, d.start, "duration event without a duration")
	case dur < 0:
		if flag == "" {
			flag = "negative_duration"
		}
		d.out.add(schema.NegativeDur, d.start, "negative duration "+strconv.FormatInt(dur, 10)+" ns")
	}
	if hasDur {
		t.cols[colOf[tab].dur].put(row, dur)
	}
	if !tab.retained() {
		if flag != "" {
			t.cols[colOf[tab].flag].put(row, d.constant(flag))
		}
		if hasDur && dur >= 0 && d.set.has(slotTS) {
			t.cols[colOf[tab].end].put(row, addTime(start, dur))
		}
	}
	switch tab {
	case tabGPU:
		t.cols[colOf[tab].kind].put(row, int64(c-classKernel))
		d.zeroIsNone()
		if !d.set.has(slotDevice) && d.set.has(slotInDevice) {
			d.val[slotDevice] = d.val[slotInDevice] // peer copies name the device that ran them
			d.set.add(slotDevice)
		}
		d.putDims(t, tab, row)
	case tabLaunches:
		d.zeroIsNone()
		d.putDims(t, tab, row)
	case tabRanges:
		on := int64(0)
		if c == classGPURange {
			on = 1
			if d.set.has(slotPID) && !d.set.has(slotDevice) {
				d.val[slotDevice] = d.val[slotPID]
				d.set.add(slotDevice)
			}
			if d.set.has(slotTID) && !d.set.has(slotStream) {
				d.val[slotStream] = d.val[slotTID]
				d.set.add(slotStream)
			}
		}
		t.cols[colOf[tab].onGPU].put(row, on)
	}
	d.putSlots(spec, t, row)
}

// stepPrefix begins the names of the marks that the PyTorch profiler makes. Those of
// 2021 have the category of operators.
const stepPrefix = "ProfilerStep#"

func (d *decoder) marksStep() bool {
	if !d.set.has(slotName) || d.asJSON.has(slotName) {
		return false
	}
	name := d.out.strs.at(uint32(d.val[slotName]))
	return len(name) > len(stepPrefix) && name[0] == 'P' && string(name[:len(stepPrefix)]) == stepPrefix
}

// zeroIsNone drops IDs of 0, which profilers write for none.
func (d *decoder) zeroIsNone() {
	if d.set.has(slotCorrelation) && d.val[slotCorrelation] == 0 {
		d.set.del(slotCorrelation)
	}
	if d.set.has(slotGraphID) && d.val[slotGraphID] == 0 {
		d.set.del(slotGraphID)
		d.set.del(slotGraphNode)
	}
}

func (d *decoder) putDims(t *tableBatch, tab tableID, row int32) {
	for _, x := range [...]struct{ s, col int }{{slotGrid, colOf[tab].grid}, {slotBlock, colOf[tab].block}} {
		if d.set.has(x.s) {
			for k, v := range d.dims[d.val[x.s]] {
				t.cols[x.col+k].put(row, v)
			}
		}
	}
}

// AddBase adds the base of a trace to a recorded time. ok is false where the
// sum leaves the range of int64 or would read as schema.Null.
func AddBase(t, base int64) (abs int64, ok bool) {
	abs = t + base
	return abs, abs != schema.Null && (base == 0 || (abs > t) == (base > 0))
}

// addTime adds a duration to a time; the sum stays in range.
func addTime(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return math.MaxInt64
}

// epochNS is a time that no relative clock reaches, in ns: the year 2001.
const epochNS = 1e18

// see takes a time of the trace into account.
func (t *timeStats) see(start, dur int64, duration bool) {
	end := addTime(start, dur)
	t.timed++
	if start > epochNS {
		t.epoch++
	}
	if start != 0 && t.any {
		t.first, t.last = min(t.first, start), max(t.last, end)
		return
	}
	t.seeFirst(start, end, duration)
}

// seeFirst takes the first time into account, or one that is zero.
func (t *timeStats) seeFirst(start, end int64, duration bool) {
	if start != 0 {
		t.any, t.first, t.last = true, start, end
		return
	}
	t.zeroAny = true
	t.zeroLast = max(t.zeroLast, end)
	if duration {
		t.zeros++
	}
}

// finishTimed files an event that has a time and no duration of its own.
func (d *decoder) finishTimed(tab tableID) {
	spec, t := &specs[tab], &d.out.tables[tab]
	row := d.addRow(t)
	if d.set.has(slotTS) {
		t.cols[colOf[tab].start].put(row, d.val[slotTS])
		if tab != tabMetadata {
			d.out.times.see(d.val[slotTS], 0, false)
		}
	} else if tab != tabMetadata {
		d.noTime()
	}
	if d.set.has(slotDur) {
		d.keepTime(slotDur)
	}
	if tab == tabMetadata {
		d.oneValue()
	}
	d.putSlots(spec, t, row)
}

func (d *decoder) noTime() {
	d.out.add(schema.BadTime, d.start, "event without a usable time")
}

// oneValue leaves one of the two arguments that a metadata event may have for
// its value, and moves the other one to the other arguments.
func (d *decoder) oneValue() {
	if !d.set.has(slotArgName) || !d.set.has(slotArgLabels) {
		return
	}
	s := slotArgLabels
	if d.set.has(slotName) && string(d.out.strs.at(uint32(d.val[slotName]))) == "process_labels" {
		s = slotArgName
	}
	d.scratch = d.appendSlot(d.scratch[:0], s)
	id := d.out.strs.put(d.scratch)
	d.addOther(argument{argumentKey: argumentKey{slots[s].name, false}, slot: -1, val: id})
	d.set.del(s)
}

// keepTime moves a time without a column to the other arguments.
func (d *decoder) keepTime(s slot) {
	d.scratch = appendMicros(d.scratch[:0], d.val[s])
	id := d.out.strs.put(d.scratch)
	d.addOther(argument{argumentKey: argumentKey{slots[s].name, true}, slot: -1, val: id})
}

func (d *decoder) finishInstant() {
	t := &d.out.tables[tabInstants]
	row := d.addRow(t)
	if d.set.has(slotTS) {
		t.cols[colOf[tabInstants].start].put(row, d.val[slotTS])
		d.out.times.see(d.val[slotTS], 0, false)
	} else {
		d.noTime()
	}
	if d.set.has(slotDur) {
		t.cols[colOf[tabInstants].dur].put(row, d.val[slotDur])
	}
	d.idText()
	d.putSlots(&specs[tabInstants], t, row)
}

// idText makes text of an id that is a number.
func (d *decoder) idText() {
	if d.set.has(slotID) {
		d.scratch = strconv.AppendInt(d.scratch[:0], d.val[slotID], 10)
		id := d.out.strs.put(d.scratch)
		d.val[slotIDText] = int64(id)
		d.set.add(slotIDText)
	}
}
