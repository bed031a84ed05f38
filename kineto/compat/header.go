package compat

import (
	"math"

	"tracelake/schema"
)

// header reads the keys beside traceEvents. Values of a wrong type that the
// reference refuses only when it makes records go to Odd.
func (b *builder) header(top map[string][]byte) error {
	get := func(key string) *value {
		v := value{}
		if raw, ok := top[key]; ok {
			v, _ = parse(raw) // was checked
		}
		return &v
	}
	t := b.t
	if err := b.deviceNames(get("deviceProperties")); err != nil {
		return refuse("%s", err.msg)
	}
	if v := get("cupti_version"); v.kind != null {
		t.CUPTIVersion = schema.Some(v.str())
	}
	if base := get("baseTimeNanoseconds"); base.truth() {
		n, err := toInt(base)
		if err != nil {
			return refuse("%s", err.msg)
		}
		if n.big != nil {
			return refuse("baseTimeNanoseconds is beyond 64 bits")
		}
		t.BaseNS = n.i
	}
	t.Host = b.headerText("host", get("host_name"))
	t.TraceID = b.headerText("trace_id", get("trace_id"))
	t.EngineVersion = b.headerText("engine_version", get("vllm_version"))
	distributed := get("distributedInfo")
	if distributed.truth() && distributed.kind != object {
		return refuse("'%s' object has no attribute 'get'", distributed.typeName())
	}
	if err := b.headerInt("rank", distributed, &t.Rank); err != nil {
		return err
	}
	return b.headerInt("world_size", distributed, &t.WorldSize)
}

// headerInt reads an optional integer; one beyond int64 goes to Odd.
func (b *builder) headerInt(key string, from *value, to *schema.Opt[int64]) error {
	v, _ := from.get(key)
	n, ok, err := toOptionalInt(v)
	switch {
	case err != nil:
		return refuse("%s", err.msg)
	case ok && n.big != nil:
		b.odd(key, &n)
	case ok:
		*to = schema.Some(n.i)
	}
	return nil
}

// headerText keeps a text as it is and puts any other value but null aside.
func (b *builder) headerText(key string, v *value) schema.Opt[string] {
	if v.kind == text {
		return schema.Some(v.s)
	}
	if v.kind != null {
		b.odd(key, v)
	}
	return schema.Opt[string]{}
}

func (b *builder) odd(key string, v *value) {
	if b.t.Odd == nil {
		b.t.Odd = map[string]schema.OddHeader{}
	}
	b.t.Odd[key] = schema.OddHeader{JSON: string(v.appendJSON(nil)), Text: v.str(), Truth: v.truth()}
}

// deviceNames reads deviceProperties: objects with an id. The last entry of an
// ordinal counts.
func (b *builder) deviceNames(v *value) *exception {
	b.t.DeviceNames = map[int64]string{}
	if !v.truth() || v.kind == object || v.kind == text {
		return nil // iterating over these finds no objects
	}
	if v.kind != array {
		return &exception{"TypeError", "'" + v.typeName() + "' object is not iterable"}
	}
	for i := range v.list {
		id, ok := v.list[i].get("id")
		if !ok {
			continue
		}
		n, err := toInt(id)
		if err != nil {
			return err
		}
		ordinal, err := b.id(n)
		if err != nil {
			return err
		}
		b.t.DeviceNames[ordinal] = textOf(&v.list[i], "name")
	}
	return nil
}

// bigZone is how many integers at each end of int64 stand for bigger ones.
const bigZone = 1 << 20

// id returns an integer for a column: itself, or one that stands for it.
func (b *builder) id(n value) (int64, *exception) {
	if n.big == nil && n.i < math.MaxInt64-bigZone && n.i > math.MinInt64+bigZone {
		return n.i, nil
	}
	s := n.str()
	if v, ok := b.big[s]; ok {
		return v, nil
	}
	k := int64(len(b.big))
	if k >= bigZone {
		return 0, &exception{"ValueError", "too many integers beyond 64 bits"}
	}
	v := math.MaxInt64 - k
	if s[0] == '-' {
		v = math.MinInt64 + 1 + k
	}
	if b.t.Big == nil {
		b.t.Big = map[int64]string{}
	}
	b.big[s], b.t.Big[v] = v, s
	return v, nil
}
