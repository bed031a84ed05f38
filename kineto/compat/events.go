package compat

import (
	"math"
	"strings"

	"tracelake/schema"
)

// builder collects a trace.
type builder struct {
	t     *schema.Trace
	names names
	big   map[string]int64
}

// names numbers distinct names.
type names struct {
	list []string
	at   map[string]uint32
}

func (n *names) number(s string) uint32 {
	i, ok := n.at[s]
	if !ok {
		i = uint32(len(n.list))
		n.list = append(n.list, s)
		n.at[s] = i
	}
	return i
}

func newBuilder() *builder {
	return &builder{
		t:     &schema.Trace{Source: "kineto", Launches: schema.Launches{FloatTicks: true}},
		names: names{at: map[string]uint32{}},
		big:   map[string]int64{},
	}
}

// event adds a duration event. The steps are those of the reference, so that
// the first offence is the same.
func (b *builder) event(e *value) error {
	if err := b.add(e); err != nil {
		return err
	}
	return nil
}

func (b *builder) add(e *value) *exception {
	cat, _ := e.get("cat")
	if cat == nil {
		return nil
	}
	if cat.kind == array || cat.kind == object {
		return &exception{"TypeError", "unhashable type: '" + cat.typeName() + "'"}
	}
	if cat.kind != text {
		return nil
	}
	args, _ := e.get("args")
	if args == nil || !args.truth() {
		args = &value{kind: object}
	}
	switch cat.s {
	case "kernel":
		return b.gpu(e, args, schema.Kernel)
	case "gpu_memcpy":
		return b.gpu(e, args, schema.Memcpy)
	case "gpu_memset":
		return b.gpu(e, args, schema.Memset)
	case "cuda_runtime", "cuda_driver":
		return b.launch(e, args)
	case "user_annotation":
		return b.span(e)
	}
	return nil
}

func noObject(args *value) *exception {
	return &exception{"AttributeError", "'" + args.typeName() + "' object has no attribute 'get'"}
}

func (b *builder) gpu(e, args *value, k schema.Kind) *exception {
	start, dur, err := times(e)
	if err != nil {
		return err
	}
	if args.kind != object {
		return noObject(args)
	}
	var ids [4]int64
	for i, key := range []string{"graph id", "device", "stream", "correlation"} {
		v, _ := args.get(key)
		n, ok, err := toOptionalInt(v)
		if err != nil {
			return err
		}
		ids[i] = schema.Null
		if zeroIsNone := key == "graph id" || key == "correlation"; ok && (n.truth() || !zeroIsNone) {
			if ids[i], err = b.id(n); err != nil {
				return err
			}
		}
	}
	startNS, err := b.ns(start)
	if err != nil {
		return err
	}
	endNS, err := b.ns(start + dur)
	if err != nil {
		return err
	}
	g := &b.t.GPU
	g.Start, g.End = append(g.Start, startNS), append(g.End, endNS)
	g.Kind = append(g.Kind, k)
	g.Name = append(g.Name, b.names.number(textOf(e, "name")))
	g.Graph, g.Device = append(g.Graph, ids[0]), append(g.Device, ids[1])
	g.Stream, g.Correlation = append(g.Stream, ids[2]), append(g.Correlation, ids[3])
	return nil
}

// thread reads the process and thread of an event, which it needs to have.
func thread(e *value) (pid, tid int64, err *exception) {
	if pid, err = needInt(e, "pid"); err == nil {
		tid, err = needInt(e, "tid")
	}
	return pid, tid, err
}

func (b *builder) launch(e, args *value) *exception {
	if args.kind != object {
		return noObject(args)
	}
	correlation, _ := args.get("correlation")
	if correlation == nil || !correlation.truth() {
		return nil
	}
	pid, tid, err := thread(e)
	if err != nil {
		return err
	}
	start, _, err := times(e)
	if err != nil {
		return err
	}
	n, err := toInt(correlation)
	if err != nil {
		return err
	}
	key, err := b.id(n)
	if err != nil {
		return err
	}
	l := &b.t.Launches
	l.Correlation = append(l.Correlation, key)
	l.PID, l.TID = append(l.PID, pid), append(l.TID, tid)
	l.Tick = append(l.Tick, schema.FloatTick(start))
	l.Name = append(l.Name, b.names.number(textOf(e, "name")))
	return nil
}

func (b *builder) span(e *value) *exception {
	ref, ok := iteration(textOf(e, "name"))
	if !ok {
		return nil
	}
	start, dur, err := times(e)
	if err != nil {
		return err
	}
	pid, tid, err := thread(e)
	if err != nil {
		return err
	}
	b.t.Spans = append(b.t.Spans, schema.Span{
		PID: pid, TID: tid, Start: schema.FloatTick(start), End: schema.FloatTick(start + dur),
		Ref: ref, EventIndex: schema.Null,
	})
	return nil
}

// iteration reads stormlog.iteration/PRODUCER/ID. It is written out here
// because readers know nothing of the packages that link.
func iteration(name string) (schema.EntityRef, bool) {
	rest, ok := strings.CutPrefix(name, "stormlog.iteration/")
	producer, id, _ := strings.Cut(rest, "/")
	return schema.EntityRef{Producer: producer, ID: id}, ok && producer != "" && id != ""
}

// times returns ts and dur in µs.
func times(e *value) (ts, dur float64, err *exception) {
	v, ok := e.get("ts")
	if !ok {
		return 0, 0, &exception{"KeyError", "ts"}
	}
	if ts, err = toFloat(v); err != nil {
		return 0, 0, err
	}
	if v, ok := e.get("dur"); ok && v.truth() {
		if dur, err = toFloat(v); err != nil {
			return 0, 0, err
		}
	}
	finite := func(f float64) bool { return !math.IsNaN(f) && !math.IsInf(f, 0) }
	if !finite(ts) || !finite(dur) {
		return 0, 0, &exception{"ValueError", "ts and dur must be finite"}
	}
	if dur < 0 {
		return 0, 0, &exception{"ValueError", "negative duration " + floatRepr(dur)}
	}
	return ts, dur, nil
}

// ns turns µs into ns since the epoch, rounding half to even.
func (b *builder) ns(us float64) (int64, *exception) {
	f := math.RoundToEven(us * 1000)
	if math.IsInf(f, 0) {
		return 0, &exception{"OverflowError", "cannot convert float infinity to integer"}
	}
	const limit = 1 << 63
	sum := b.t.BaseNS + int64(f)
	if f < -limit || f >= limit || (int64(f) < 0) != (sum < b.t.BaseNS) || sum == schema.Null {
		return 0, &exception{"OverflowError", "time beyond 64 bits"}
	}
	return sum, nil
}

func needInt(e *value, key string) (int64, *exception) {
	v, ok := e.get(key)
	if !ok {
		return 0, &exception{"KeyError", key}
	}
	n, err := toInt(v)
	if err == nil && (n.big != nil || n.i == schema.Null) {
		err = &exception{"OverflowError", key + " beyond 64 bits"}
	}
	return n.i, err
}

// textOf returns the text form of a value, "" where it is missing.
func textOf(e *value, key string) string {
	v, ok := e.get(key)
	if !ok {
		return ""
	}
	return v.str()
}
