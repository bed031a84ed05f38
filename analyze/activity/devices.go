package activity

import (
	"tracelake/analyze/interval"
	"tracelake/schema"
)

// DeviceTotal is what one device did. A device is told apart by its ordinal
// and, where the source names the process of GPU work, by process.
type DeviceTotal struct {
	PID, Device schema.Opt[int64]
	FirstEvent  int32 // first event of the device in source order
	Events      int64 // all events
	Excluded    int64 // events that count in none of the times below
	BusyNS      int64 // length of the union of all events over all streams
	SpanNS      int64 // length of the union of the records' spans, holes included
	SummedNS    int64 // plain sum of durations
	FirstNS     schema.Opt[int64]
	LastNS      schema.Opt[int64]
}

// DeviceTotals returns the devices of the records in the order of their first
// events.
func (g *Groups) DeviceTotals() []DeviceTotal {
	of, out := g.devices()
	// Counting sort of the records by device, so that a trace with as many
	// devices as events costs no more than others.
	offset := make([]int32, len(out)+1)
	for _, d := range of {
		offset[d+1]++
	}
	for d := range out {
		offset[d+1] += offset[d]
	}
	records, next := make([]int32, g.Len()), append([]int32(nil), offset...)
	for i, d := range of {
		records[next[d]] = int32(i)
		next[d]++
	}
	for d := range out {
		out[d].measure(g, records[offset[d]:offset[d+1]])
	}
	return out
}

// devices numbers the devices in the order of their first events and returns
// the device of each record.
func (g *Groups) devices() (of []int32, out []DeviceTotal) {
	type key struct{ pid, device int64 }
	e := &g.trace.GPU
	number := map[key]int32{}
	of = make([]int32, g.Len())
	for i, first := range g.First {
		k := key{pidOf(e, first), e.Device[first]}
		d, ok := number[k]
		if !ok {
			d = int32(len(out))
			number[k] = d
			out = append(out, DeviceTotal{PID: schema.OptInt(k.pid), Device: schema.OptInt(k.device), FirstEvent: first})
		}
		of[i] = d
	}
	return of, out
}

// measure computes the unions from the merged intervals of the device's
// records, which cover the same time as the events.
func (d *DeviceTotal) measure(g *Groups, records []int32) {
	n := 0
	for _, r := range records {
		n += max(1, len(g.Intervals(int(r))))
	}
	spans := make([]interval.Interval, 0, n)
	for _, r := range records {
		i := int(r)
		d.Events += int64(len(g.Members(i)))
		d.SummedNS = interval.AddSat(d.SummedNS, g.Summed[i])
		if g.Excluded != nil {
			d.Excluded += int64(g.Excluded[i])
		}
		if g.Start[i] == schema.Null {
			continue
		}
		span := interval.Interval{Start: g.Start[i], End: g.End[i]}
		spans = append(spans, span)
		if !d.FirstNS.OK {
			d.FirstNS, d.LastNS = schema.Some(span.Start), schema.Some(span.End)
		}
		d.FirstNS.V = min(d.FirstNS.V, span.Start)
		d.LastNS.V = max(d.LastNS.V, span.End)
	}
	interval.Sort(spans)
	d.SpanNS = interval.BusySorted(spans)
	busy := spans[:0] // one list after the other, to save memory
	for _, r := range records {
		i := int(r)
		if g.Start[i] == schema.Null {
			continue
		}
		if v := g.Intervals(i); v != nil {
			busy = append(busy, v...)
		} else {
			busy = append(busy, interval.Interval{Start: g.Start[i], End: g.End[i]})
		}
	}
	interval.Sort(busy)
	d.BusyNS = interval.BusySorted(busy)
}
