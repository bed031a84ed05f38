package execlog

import (
	"math"
	"slices"

	"tracelake/analyze/link"
	"tracelake/schema"
)

// Statuses of a binding.
const (
	Bound    = "bound"     // every process of the trace is one worker
	Partial  = "partial"   // some are
	None     = "none"      // none is
	NoHost   = "no_host"   // the trace does not name its host
	NoWindow = "no_window" // the trace has neither GPU events nor launches
)

// Binding tells which workers the processes of a trace are.
type Binding struct {
	Status    string                     `json:"status"`
	UUIDs     map[int64]map[int64]string `json:"device_uuids"` // by process and ordinal
	Workers   map[int64]string           `json:"workers"`      // epoch by process
	Ambiguous map[int64][]string         `json:"ambiguous"`    // epochs by process that could be several
	Unmatched []int64                    `json:"unmatched"`    // processes that no worker is
}

// Bind finds the worker of each process of a trace: by host, process ID and
// the time that the trace covers. A worker's GPU counts for its own process
// only.
func (l *Log) Bind(t *schema.Trace, links *link.Links) *Binding {
	b := &Binding{
		Status: NoWindow, UUIDs: map[int64]map[int64]string{}, Workers: map[int64]string{},
		Ambiguous: map[int64][]string{}, Unmatched: []int64{},
	}
	start, end, pids := window(t, links)
	switch {
	case start > end:
		b.Unmatched = pids
		return b
	case !t.Host.OK && t.Odd["host"].JSON == "":
		b.Status, b.Unmatched = NoHost, pids
		return b
	}
	for _, pid := range pids {
		var found []*Worker
		for i := range l.Workers {
			if w := &l.Workers[i]; t.Host.OK && w.Host == t.Host.V && w.PID == pid && w.covers(start, end) {
				found = append(found, w)
			}
		}
		switch len(found) {
		case 0:
			b.Unmatched = append(b.Unmatched, pid)
		case 1:
			b.Workers[pid] = found[0].Epoch
			if found[0].Ordinal.OK && found[0].UUID.OK {
				b.UUIDs[pid] = map[int64]string{found[0].Ordinal.V: found[0].UUID.V}
			}
		default:
			for _, w := range found {
				b.Ambiguous[pid] = append(b.Ambiguous[pid], w.Epoch)
			}
		}
	}
	switch {
	case len(b.Workers) == 0:
		b.Status = None
	case len(b.Workers) == len(pids):
		b.Status = Bound
	default:
		b.Status = Partial
	}
	return b
}

// window returns the time from the first start to the last end of GPU events
// and launches, and the processes of both. Start lies behind end where there
// are none.
func window(t *schema.Trace, links *link.Links) (start, end int64, pids []int64) {
	start, end = math.MaxInt64, math.MinInt64
	seen := map[int64]bool{}
	last := schema.Null
	note := func(key int64) {
		if key != schema.Null && key != last {
			last = key
			if pid := t.ProcessID(key); pid != schema.Null {
				seen[pid] = true
			}
		}
	}
	g, calls := &t.GPU, &t.Launches
	for i := range g.Len() {
		if g.PID != nil {
			note(g.PID[i])
		}
		if !g.IsExcluded(i) {
			start, end = min(start, g.Start[i]), max(end, g.End[i])
		}
	}
	for i := range calls.Len() {
		if calls.Correlation[i] == schema.Null || links.Superseded[i] {
			continue
		}
		note(calls.PID[i])
		at := calls.Tick[i]
		if calls.FloatTicks {
			at = t.BaseNS + int64(math.RoundToEven(schema.TickFloat(at)*1000))
		}
		if at != schema.Null {
			start, end = min(start, at), max(end, at)
		}
	}
	pids = make([]int64, 0, len(seen))
	for p := range seen {
		pids = append(pids, p)
	}
	slices.Sort(pids)
	return start, end, pids
}
