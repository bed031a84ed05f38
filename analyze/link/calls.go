package link

import (
	"tracelake/analyze/internal/posindex"
	"tracelake/schema"
)

// calls finds the launch call of a correlation ID.
type calls struct {
	l         *schema.Launches
	table     *posindex.Table // last call of each (KeyPID, Correlation)
	contested []bool          // per call: several processes share its key; nil for none

	superseded              []bool
	nSuperseded, nContested int64
}

// newCalls indexes the calls that have a correlation ID. The last call of a key
// counts. With ByProcess, calls supersede only those of their own process, and
// a key that several processes share is contested.
func newCalls(l *schema.Launches, o Options) *calls {
	c := &calls{l: l, table: posindex.New(l.Len()), superseded: make([]bool, l.Len())}
	perProcess := o.ByProcess && severalProcesses(l)
	var own *posindex.Table
	if perProcess {
		own = posindex.New(l.Len())
		c.contested = make([]bool, l.Len())
	}
	for i := range l.Len() {
		if l.Correlation[i] == schema.Null {
			continue
		}
		old := c.put(i)
		if perProcess {
			if old >= 0 {
				c.contested[i] = c.contested[old] || l.PID[old] != l.PID[i]
				if c.contested[i] && !c.contested[old] {
					c.nContested++
				}
			}
			old = c.putOwn(own, i)
		}
		if old >= 0 {
			c.superseded[old] = true
			c.nSuperseded++
		}
	}
	return c
}

func severalProcesses(l *schema.Launches) bool {
	for _, p := range l.PID {
		if p != l.PID[0] {
			return true
		}
	}
	return false
}

func (c *calls) put(i int) int32 {
	key, corr := c.l.KeyPID[i], c.l.Correlation[i]
	return c.table.Put(posindex.Hash(key, corr, 0), int32(i), func(p int32) bool {
		return c.l.Correlation[p] == corr && c.l.KeyPID[p] == key
	})
}

func (c *calls) putOwn(own *posindex.Table, i int) int32 {
	key, corr, pid := c.l.KeyPID[i], c.l.Correlation[i], c.l.PID[i]
	return own.Put(posindex.Hash(key, corr, pid), int32(i), func(p int32) bool {
		return c.l.Correlation[p] == corr && c.l.KeyPID[p] == key && c.l.PID[p] == pid
	})
}

// find returns the call that launched work of a process (Null where keys have
// none) with a correlation ID, or -1 and the reason.
func (c *calls) find(pid, corr int64) (int32, Reason) {
	p := c.table.Find(posindex.Hash(pid, corr, 0), func(p int32) bool {
		return c.l.Correlation[p] == corr && c.l.KeyPID[p] == pid
	})
	if p >= 0 && c.contested != nil && c.contested[p] {
		return -1, AmbiguousLaunch
	}
	return p, NoLaunch
}

// externalIDs finds the only call with an External id. The zero value finds
// nothing.
type externalIDs struct {
	l       *schema.Launches
	table   *posindex.Table
	several []bool // per call: another one has its External id
}

// newExternalIDs indexes the calls by External id if an event needs it. An
// External id of 0 means that there was no operator.
func newExternalIDs(t *schema.Trace) externalIDs {
	l, g := &t.Launches, &t.GPU
	if l.ExternalID == nil || g.ExternalID == nil || !needsExternalIDs(g) {
		return externalIDs{}
	}
	x := externalIDs{l: l, table: posindex.New(l.Len()), several: make([]bool, l.Len())}
	for i, id := range l.ExternalID {
		if id == schema.Null || id == 0 {
			continue
		}
		old := x.table.Put(posindex.Hash(id, 0, 0), int32(i), func(p int32) bool { return l.ExternalID[p] == id })
		x.several[i] = old >= 0
	}
	return x
}

func needsExternalIDs(g *schema.GPUEvents) bool {
	for i, id := range g.ExternalID {
		if id != schema.Null && id != 0 && g.Correlation[i] == schema.Null {
			return true
		}
	}
	return false
}

func (x externalIDs) find(g *schema.GPUEvents, i int) int32 {
	if x.table == nil || g.ExternalID[i] == schema.Null || g.ExternalID[i] == 0 {
		return -1
	}
	id := g.ExternalID[i]
	p := x.table.Find(posindex.Hash(id, 0, 0), func(p int32) bool { return x.l.ExternalID[p] == id })
	if p >= 0 && x.several[p] {
		return -1
	}
	return p
}
