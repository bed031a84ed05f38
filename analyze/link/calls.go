package link

import (
	"strings"

	"tracelake/analyze/internal/posindex"
	"tracelake/schema"
)

// calls finds the launch call of a correlation ID.
type calls struct {
	l         *schema.Launches
	table     *posindex.Table // last call of each (KeyPID, Correlation)
	contested []bool          // per call: several processes share its key; nil for none

	superseded  []bool
	nSuperseded int64
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
	key, corr := c.l.Key(i), c.l.Correlation[i]
	return c.table.Put(posindex.Hash(corr, key, 0), int32(i), func(p int32) bool {
		return c.l.Correlation[p] == corr && c.l.Key(int(p)) == key
	})
}

func (c *calls) putOwn(own *posindex.Table, i int) int32 {
	key, corr, pid := c.l.Key(i), c.l.Correlation[i], c.l.PID[i]
	return own.Put(posindex.Hash(corr, key, pid), int32(i), func(p int32) bool {
		return c.l.Correlation[p] == corr && c.l.Key(int(p)) == key && c.l.PID[p] == pid
	})
}

// find returns the call that launched work of a process (Null where keys have
// none) with a correlation ID, or -1 and the reason.
func (c *calls) find(pid, corr int64) (int32, Reason) {
	p := c.table.Find(posindex.Hash(corr, pid, 0), func(p int32) bool {
		return c.l.Correlation[p] == corr && c.l.Key(int(p)) == pid
	})
	if p >= 0 && c.contested != nil && c.contested[p] {
		return -1, AmbiguousLaunch
	}
	return p, NoLaunch
}

// externalIDs finds the only call with an External id. One operator often
// makes several calls, such as a copy and a synchronisation, so calls whose
// name fits the kind of the work come first. The zero value finds nothing.
type externalIDs struct {
	l   *schema.Launches
	fit onlyCalls // by External id and kind of work
	any onlyCalls // by External id
}

// onlyCalls finds calls whose key no other call has.
type onlyCalls struct {
	table   *posindex.Table
	several []bool // per call: another one has its key
}

func (c *onlyCalls) put(hash uint64, i int, same func(p int32) bool) {
	c.several[i] = c.table.Put(hash, int32(i), same) >= 0
}

// noKind stands for calls whose name fits no kind of work.
const noKind = ^schema.Kind(0)

// kindOfCall tells which kind of work a call of CUDA, HIP or another runtime
// launches, from its name.
func kindOfCall(name string) schema.Kind {
	name = strings.ToLower(name)
	switch {
	case strings.Contains(name, "memcpy"):
		return schema.Memcpy
	case strings.Contains(name, "memset"):
		return schema.Memset
	case strings.Contains(name, "launch"):
		return schema.Kernel
	}
	return noKind
}

// newExternalIDs indexes the calls by External id if an event needs it. An
// External id of 0 means that there was no operator.
func newExternalIDs(t *schema.Trace) *externalIDs {
	l, g := &t.Launches, &t.GPU
	if l.ExternalID == nil || g.ExternalID == nil || !needsExternalIDs(g) {
		return nil
	}
	n := l.Len()
	x := &externalIDs{
		l:   l,
		fit: onlyCalls{posindex.New(n), make([]bool, n)},
		any: onlyCalls{posindex.New(n), make([]bool, n)},
	}
	kinds := make(map[uint32]schema.Kind)
	kind := func(i int32) schema.Kind {
		k, ok := kinds[l.Name[i]]
		if !ok {
			k = kindOfCall(l.Names[l.Name[i]])
			kinds[l.Name[i]] = k
		}
		return k
	}
	for i, id := range l.ExternalID {
		if id == schema.Null || id == 0 {
			continue
		}
		k := kind(int32(i))
		x.any.put(posindex.Hash(id, 0, 0), i, func(p int32) bool { return l.ExternalID[p] == id })
		if k != noKind {
			x.fit.put(posindex.Hash(id, int64(k), 0), i, func(p int32) bool { return l.ExternalID[p] == id && kind(p) == k })
		}
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

func (x *externalIDs) find(g *schema.GPUEvents, i int) int32 {
	if x == nil || g.ExternalID[i] == schema.Null || g.ExternalID[i] == 0 {
		return -1
	}
	id, k := g.ExternalID[i], g.Kind[i]
	p := x.fit.table.Find(posindex.Hash(id, int64(k), 0), func(p int32) bool {
		return x.l.ExternalID[p] == id && kindOfCall(x.l.Names[x.l.Name[p]]) == k
	})
	only := &x.fit
	if p < 0 {
		p = x.any.table.Find(posindex.Hash(id, 0, 0), func(p int32) bool { return x.l.ExternalID[p] == id })
		only = &x.any
	}
	if p >= 0 && only.several[p] {
		return -1
	}
	return p
}
