package compat

import (
	"strings"

	"tracelake/schema"
)

// spans reads the iteration ranges.
func (l *loader) spans() error {
	if !l.tables["NVTX_EVENTS"] {
		return nil
	}
	return l.rows("select start, end, text, textId, globalTid from NVTX_EVENTS where eventType in (59, 60) and end is not null", func(v []value) error {
		name := v[2]
		if name == nil {
			name = l.lookup(v[3], "")
		}
		s, ok := name.(string)
		if !ok {
			kind := map[bool]string{true: "NoneType", false: "int"}[name == nil]
			return &Error{"'" + kind + "' object has no attribute 'startswith'"}
		}
		ref, ok := iteration(s)
		if !ok || v[4] == nil {
			return nil
		}
		global, err := toInt(v[4])
		if err != nil {
			return err
		}
		start, err := toInt(v[0])
		if err != nil {
			return err
		}
		end, err := toInt(v[1])
		if err != nil {
			return err
		}
		pid, tid := process(global)
		l.t.Spans = append(l.t.Spans, schema.Span{
			PID: pid, TID: tid, Start: schema.FloatTick(thousandth(start)), End: schema.FloatTick(thousandth(end)),
			Ref: ref, EventIndex: schema.Null,
		})
		return nil
	})
}

// iteration reads stormlog.iteration/PRODUCER/ID.
func iteration(name string) (schema.EntityRef, bool) {
	rest, ok := strings.CutPrefix(name, "stormlog.iteration/")
	producer, id, _ := strings.Cut(rest, "/")
	return schema.EntityRef{Producer: producer, ID: id}, ok && producer != "" && id != ""
}
