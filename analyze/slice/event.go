package slice

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"tracelake/kineto"
)

// object builds a JSON object.
type object struct {
	b     []byte
	empty bool
}

func (o *object) open()  { o.b, o.empty = append(o.b, '{'), true }
func (o *object) close() { o.b, o.empty = append(o.b, '}'), false }

func (o *object) key(k string) {
	if !o.empty {
		o.b = append(o.b, ',')
	}
	o.empty = false
	o.b = append(kineto.AppendQuoted(o.b, k), ':')
}

// put adds a value, unless it is nil.
func (o *object) put(k string, v any) {
	if v != nil {
		o.key(k)
		o.b = appendValue(o.b, v)
	}
}

// raw adds JSON, unless it is "".
func (o *object) raw(k, v string) {
	if v != "" {
		o.key(k)
		o.b = append(o.b, v...)
	}
}

// members adds the members of an object in JSON.
func (o *object) members(text string) {
	inner := strings.TrimSpace(strings.TrimSuffix(strings.TrimPrefix(text, "{"), "}"))
	if inner == "" {
		return
	}
	if !o.empty {
		o.b = append(o.b, ',')
	}
	o.empty = false
	o.b = append(o.b, inner...)
}

func quoted(s string) string { return string(kineto.AppendQuoted(nil, s)) }

// appendValue appends a value of a row as JSON.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case int64:
		return strconv.AppendInt(b, v, 10)
	case string:
		return kineto.AppendQuoted(b, v)
	case bool:
		return strconv.AppendBool(b, v)
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return kineto.AppendQuoted(b, strconv.FormatFloat(v, 'g', -1, 64))
		}
		return strconv.AppendFloat(b, v, 'g', -1, 64)
	case []any:
		b = append(b, '[')
		for i, x := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, x)
		}
		return append(b, ']')
	}
	return append(b, "null"...)
}

// micros appends a time in ns as µs with three decimals, exactly.
func micros(b []byte, ns int64) []byte {
	u := uint64(ns)
	if ns < 0 {
		b = append(b, '-')
		u = -u
	}
	b = append(strconv.AppendUint(b, u/1000, 10), '.')
	return append(b, byte('0'+u/100%10), byte('0'+u/10%10), byte('0'+u%10))
}

func (o *object) time(k string, ns int64, ok bool) {
	if ok {
		o.key(k)
		o.b = micros(o.b, ns)
	}
}

// eventPrefix marks members of args_json that stood beside args.
const eventPrefix = "event."

// splitArgs takes the members that stood beside args out of args_json.
func splitArgs(text string) (args string, beside []member) {
	if !strings.Contains(text, `"`+eventPrefix) {
		return text, nil
	}
	var rest object
	rest.open()
	for _, m := range membersOf(text) {
		if name, ok := strings.CutPrefix(m.key, eventPrefix); ok {
			beside = append(beside, member{name, m.json})
		} else {
			rest.raw(m.key, m.json)
		}
	}
	rest.close()
	return string(rest.b), beside
}

type member struct{ key, json string }

// argKeys are the arguments of each table.
var argKeys = func() map[string][]kineto.ArgKey {
	out := map[string][]kineto.ArgKey{}
	for _, t := range tables {
		out[t] = kineto.ArgKeys(t)
	}
	return out
}()

// event writes the event of a row; more holds the further rows of a counter.
func (s *slicer) event(o *object, table string, r record, more []record) {
	o.open()
	phase, cat := s.phase(table, r), r.value("category")
	if s.place.nsys {
		cat = kinetoCategory(table, r)
	}
	if phase != "" {
		o.put("ph", phase)
	}
	o.put("cat", cat)
	if table == "launches" {
		o.put("name", r.value("api"))
	} else {
		o.put("name", r.value("name"))
	}
	onGPU, _ := r.value("on_gpu").(bool)
	pid, tid := s.place.at(r, onGPU || table == "gpu_events")
	if len(s.lanes.of) > 0 {
		if index, ok := r.int("event_index"); ok {
			tid = tid.lane(s.lanes.of[index])
		}
	}
	o.raw("pid", string(pid))
	o.raw("tid", string(tid))
	start, timed := r.int("start_ns")
	base, _ := s.trace.int("base_ns") // 0 where there is none
	o.time("ts", start-base, timed)
	dur, lasting := r.int("dur_ns")
	o.time("dur", dur, lasting)
	switch table {
	case "flows":
		o.put("id", r.value("id"))
		o.put("id", r.value("id_text"))
		o.put("bp", r.value("bind_point"))
	case "counters":
		o.put("id", r.value("id"))
	case "instants":
		o.put("id", r.value("id"))
		if s.place.nsys {
			o.put("s", "t")
		}
		o.put("s", r.value("scope"))
	}
	args, beside := splitArgs(r.text("args_json"))
	for _, m := range beside {
		o.raw(m.key, m.json)
	}
	at := len(o.b)
	o.key("args")
	o.open()
	switch table {
	case "counters":
		series(o, r)
		for _, m := range more {
			series(o, m)
		}
	case "metadata":
		o.put(metadataKey(r.text("name")), r.value("value"))
		o.put("sort_index", r.value("sort_index"))
	default:
		s.args(o, table, r)
	}
	o.members(args)
	if o.empty { // no args at all
		o.b, o.empty = o.b[:at], false
	} else {
		o.close()
	}
	o.close()
}

func (s *slicer) phase(table string, r record) string {
	switch table {
	case "cpu_events":
		switch r.text("pairing") {
		case "no_end":
			return "B"
		case "no_begin":
			return "E"
		}
		return "X"
	case "instants", "flows":
		if p := r.text("phase"); p != "" || !s.place.nsys {
			return p
		}
		return "i"
	case "counters":
		return "C"
	case "metadata":
		return "M"
	}
	return "X"
}

func metadataKey(name string) string {
	if name == "process_labels" {
		return "labels"
	}
	return "name"
}

// args writes the arguments that have columns.
func (s *slicer) args(o *object, table string, r record) {
	for _, k := range argKeys[table] {
		switch k.Column {
		case "correlation":
			if c, ok := s.place.correlation(r); ok {
				o.put(k.Key, c)
			}
		case "device":
			if d, ok := s.place.device(r); ok {
				o.put(k.Key, d)
			}
		default:
			if v := r.value(k.Column); k.JSON {
				text, _ := v.(string)
				o.raw(k.Key, text)
			} else {
				o.put(k.Key, v)
			}
		}
	}
	for _, dims := range []string{"grid", "block"} {
		if x := r.value(dims + "_x"); x != nil {
			o.put(dims, []any{x, r.value(dims + "_y"), r.value(dims + "_z")})
		}
	}
	if s.place.nsys {
		nsightArgs(o, table, r)
	}
}

// nsightArgs writes what only reports of Nsight Systems say.
func nsightArgs(o *object, table string, r record) {
	switch table {
	case "ranges":
		o.put("nvtx", r.value("category"))
		o.put("domain", r.value("domain"))
		o.put("category", r.value("nvtx_category"))
		o.put("payload", r.value("payload"))
		o.put("end thread", r.value("end_tid"))
	case "launches":
		o.put("return value", r.value("return_value"))
	case "gpu_events":
		o.put("short name", r.value("short_name"))
		o.put("copy kind", r.value("copy_kind"))
		o.put("source memory", r.value("src_memory"))
		o.put("target memory", r.value("dst_memory"))
		if r.text("kind") == "gpu_graph" {
			o.put("traced as", "graph")
		}
	}
}

// kinetoCategory returns the category under which readers of Kineto traces know
// a row of a report of Nsight Systems.
func kinetoCategory(table string, r record) any {
	switch {
	case table == "ranges":
		return "user_annotation"
	case r.text("kind") == "gpu_graph":
		return "kernel" // its time is busy time
	case table == "launches" && r.value("category") == nil:
		return "cuda_runtime"
	}
	return r.value("category")
}

// series writes a sample of a counter.
func series(o *object, r record) {
	name, ok := r.value("series").(string)
	if !ok {
		return
	}
	for _, v := range []any{r.value("value_int"), r.value("value"), r.value("value_text")} {
		if v != nil {
			o.put(name, v)
			return
		}
	}
	o.raw(name, "null")
}

// membersOf returns the members of an object in JSON.
func membersOf(text string) (out []member) {
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		k, err := d.Token()
		var v json.RawMessage
		if err == nil {
			err = d.Decode(&v)
		}
		key, ok := k.(string)
		if err != nil || !ok {
			return out
		}
		out = append(out, member{key, string(v)})
	}
	return out
}
