package slice

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// write writes the header, the events and what follows them.
func (s *slicer) write(ctx context.Context, w io.Writer) error {
	var o object
	if err := s.header(ctx, &o); err != nil {
		return err
	}
	o.key("traceEvents")
	o.b = append(o.b, '[')
	if _, err := w.Write(o.b); err != nil {
		return err
	}
	out := &events{w: w}
	if err := s.writeRows(ctx, out); err != nil {
		return err
	}
	if err := s.writeArrows(ctx, out); err != nil {
		return err
	}
	if err := s.writeNames(out); err != nil {
		return err
	}
	if err := out.flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n]}\n")
	return err
}

// events collects events and writes them, one per line.
type events struct {
	w    io.Writer
	o    object
	some bool
}

// next starts an event.
func (e *events) next() (*object, error) {
	if len(e.o.b) > 1<<16 {
		if err := e.flush(); err != nil {
			return nil, err
		}
	}
	if e.some {
		e.o.b = append(e.o.b, ',')
	}
	e.some = true
	e.o.b = append(e.o.b, '\n')
	return &e.o, nil
}

func (e *events) flush() error {
	_, err := e.w.Write(e.o.b)
	e.o.b = e.o.b[:0]
	return err
}

// writeRows writes the rows of all tables in the order of the source.
func (s *slicer) writeRows(ctx context.Context, out *events) error {
	type source struct {
		*cursor
		table string
		index int64
	}
	var open []*source
	advance := func(x *source) error {
		ok, err := x.advance(ctx)
		if err != nil {
			return err
		}
		if !ok {
			open = slices.DeleteFunc(open, func(y *source) bool { return y == x })
			return nil
		}
		x.index, _ = x.rec.int("event_index")
		return nil
	}
	for _, t := range tables {
		open = append(open, &source{cursor: &cursor{db: s.db, table: "slice_" + t}, table: t})
	}
	for _, x := range slices.Clone(open) {
		if err := advance(x); err != nil {
			return err
		}
	}
	for len(open) > 0 {
		first := slices.MinFunc(open, func(a, b *source) int { return int(min(1, max(-1, a.index-b.index))) })
		rec := record{first.rec.at, slices.Clone(first.rec.v)}
		var more []record
		index, table := first.index, first.table
		if err := advance(first); err != nil {
			return err
		}
		for table == "counters" && slices.Contains(open, first) && first.index == index {
			more = append(more, record{first.rec.at, slices.Clone(first.rec.v)})
			if err := advance(first); err != nil {
				return err
			}
		}
		o, err := out.next()
		if err != nil {
			return err
		}
		s.event(o, table, rec, more)
	}
	return nil
}

// writeArrows draws, for reports of Nsight Systems, which know none, arrows
// from calls to the GPU work that they launched.
func (s *slicer) writeArrows(ctx context.Context, out *events) error {
	if !s.place.nsys {
		return nil
	}
	err := s.db.Exec(ctx, `CREATE OR REPLACE TEMP TABLE slice_arrows AS
SELECT g.event_index, g.start_ns AS work_ns, g.global_pid, g.pid, g.device, g.stream, l.start_ns AS call_ns, l.tid
FROM slice_gpu_events AS g JOIN slice_launches AS l ON l.event_index = g.launch_id
ORDER BY g.event_index`)
	if err != nil {
		return err
	}
	c := &cursor{db: s.db, table: "slice_arrows"}
	for {
		ok, err := c.advance(ctx)
		if err != nil || !ok {
			return err
		}
		index, _ := c.rec.int("event_index")
		callPID, callTID := s.place.host(c.rec), recorded(c.rec, "tid")
		workPID, workTID := s.place.at(c.rec, true)
		for _, end := range []struct {
			phase, column string
			pid, tid      who
		}{{"s", "call_ns", callPID, callTID}, {"f", "work_ns", workPID, workTID.lane(s.lanes.of[index])}} {
			o, err := out.next()
			if err != nil {
				return err
			}
			at, timed := c.rec.int(end.column)
			base, _ := s.trace.int("base_ns")
			o.open()
			o.put("ph", end.phase)
			o.put("cat", "ac2g")
			o.put("name", "ac2g")
			o.put("id", index)
			o.raw("pid", string(end.pid))
			o.raw("tid", string(end.tid))
			o.time("ts", at-base, timed)
			if end.phase == "f" {
				o.put("bp", "e")
			}
			o.close()
		}
	}
}

// written are header keys that columns hold, in the order in which they are
// written.
var written = []struct{ column, key string }{
	{"host", "host_name"},
	{"trace_uuid", "trace_id"},
	{"cupti_version", "cupti_version"},
	{"cuda_runtime_version", "cuda_runtime_version"},
	{"cuda_driver_version", "cuda_driver_version"},
	{"hip_runtime_version", "hip_runtime_version"},
}

// header writes all keys but the events. The object stays open.
func (s *slicer) header(ctx context.Context, o *object) error {
	rest := membersOf(s.trace.text("header_json"))
	take := func(key string) string {
		for i, m := range rest {
			if m.key == key {
				rest = slices.Delete(rest, i, i+1)
				return m.json
			}
		}
		return ""
	}
	o.open()
	if v := take("schemaVersion"); v != "" {
		o.raw("schemaVersion", v)
	} else {
		o.put("schemaVersion", int64(1))
	}
	distributed := take("distributedInfo")
	if err := s.deviceProperties(ctx, o, take("deviceProperties")); err != nil {
		return err
	}
	for _, w := range written {
		if v, ok := s.trace.value(w.column).(string); ok {
			o.raw(w.key, numberOrText(v))
		}
	}
	if s.trace.text("engine") == "vllm" {
		o.put("vllm_version", s.trace.value("engine_version"))
	}
	s.distributed(o, distributed)
	take("baseTimeNanoseconds") // where it was no whole number
	for _, m := range rest {
		o.raw(m.key, m.json)
	}
	o.put("baseTimeNanoseconds", s.trace.value("base_ns"))
	o.key("tracelake_slice")
	o.open()
	o.put("trace_id", s.rep.TraceID)
	o.put("from_ns", s.rep.Offset.Nanoseconds())
	o.put("to_ns", (s.rep.Offset + s.rep.Length).Nanoseconds())
	o.put("iteration", optional(s.o.Iteration))
	if s.o.Device != nil {
		o.put("device", *s.o.Device)
	}
	o.close()
	return nil
}

func optional(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// numberOrText writes a version as the number it was.
func numberOrText(v string) string {
	if n, err := strconv.ParseInt(v, 10, 64); err == nil && strconv.FormatInt(n, 10) == v {
		return v
	}
	return quoted(v)
}

// deviceProperties writes what is known of the GPUs; rest is what the source had
// there that has no row: entries without an ordinal, or something that is no list.
func (s *slicer) deviceProperties(ctx context.Context, o *object, rest string) error {
	unnumbered, list := strings.CutPrefix(strings.TrimSuffix(rest, "]"), "[")
	if rest != "" && !list {
		o.raw("deviceProperties", rest)
		return nil
	}
	found, err := s.all(ctx, "FROM devices WHERE trace_id = getvariable('slice_trace') ORDER BY gpu_events = 0, ordinal, global_pid NULLS FIRST LIMIT 4096")
	if err != nil {
		return err
	}
	o.key("deviceProperties")
	o.b = append(o.b, '[')
	seen := map[int64]bool{}
	first := true
	for _, r := range found {
		n, ok := r.int("ordinal")
		if ok && s.place.nsys {
			n = s.place.gpu(r, n)
		}
		if ok && seen[n] || !described(r) {
			continue
		}
		seen[n] = true
		if !first {
			o.b = append(o.b, ',')
		}
		first = false
		o.open()
		if ok {
			o.put("id", n)
		}
		o.put("name", r.value("name"))
		o.put("totalGlobalMem", r.value("memory_bytes"))
		o.put("computeMajor", r.value("compute_major"))
		o.put("computeMinor", r.value("compute_minor"))
		o.put("numSms", r.value("sm_count"))
		o.put("warpSize", r.value("warp_size"))
		if r.text("uuid_source") == "trace" {
			o.put("uuid", r.value("uuid"))
		}
		o.members(r.text("properties_json"))
		o.close()
	}
	if !first && unnumbered != "" {
		o.b = append(o.b, ',')
	}
	o.b = append(append(o.b, unnumbered...), ']')
	return nil
}

// described tells whether the source said anything of a GPU: others appear
// because an event ran on them.
func described(r record) bool {
	return slices.ContainsFunc([]string{"name", "memory_bytes", "sm_count", "compute_major", "properties_json"}, func(c string) bool {
		return r.value(c) != nil
	}) || r.text("uuid_source") == "trace"
}

// distributed writes distributedInfo, where anything is known; rest holds its
// members that have no column.
func (s *slicer) distributed(o *object, rest string) {
	rank, ranked := s.trace.int("rank")
	ranked = ranked && rank >= 0
	if !ranked && rest == "" && s.trace.value("world_size") == nil && s.trace.value("distributed_backend") == nil {
		return
	}
	o.key("distributedInfo")
	if rest != "" && !strings.HasPrefix(rest, "{") {
		o.b = append(o.b, rest...)
		return
	}
	o.open()
	o.put("backend", s.trace.value("distributed_backend"))
	if ranked {
		o.put("rank", rank)
	}
	o.put("world_size", s.trace.value("world_size"))
	groups := s.trace.text("process_groups_json")
	var list []json.RawMessage
	if json.Unmarshal([]byte(groups), &list) == nil {
		o.put("pg_count", int64(len(list)))
	}
	o.raw("pg_config", groups)
	o.members(rest)
	o.close()
}

// writeNames names the threads that the source did not name: lanes, and of
// reports of Nsight Systems the GPUs and streams.
func (s *slicer) writeNames(out *events) error {
	put := func(name string, pid, tid who, key string, value any) error {
		o, err := out.next()
		if err != nil {
			return err
		}
		o.open()
		o.put("ph", "M")
		o.put("name", name)
		o.raw("pid", string(pid))
		o.raw("tid", string(tid))
		o.key("args")
		o.open()
		o.put(key, value)
		o.close()
		o.close()
		return nil
	}
	var err error
	note := func(name string, pid, tid who, key string, value any) {
		if err == nil {
			err = put(name, pid, tid, key, value)
		}
	}
	gpus := map[who]bool{}
	for _, t := range s.lanes.order {
		label, sort := streamName(t.tid)
		if s.place.nsys {
			if !gpus[t.pid] {
				gpus[t.pid] = true
				n, _ := strconv.ParseInt(string(t.pid), 10, 64)
				note("process_name", t.pid, "0", "name", strings.TrimSpace(fmt.Sprintf("GPU %d %s", n, s.place.names[n])))
				note("process_labels", t.pid, "0", "labels", fmt.Sprintf("GPU %d", n))
				note("process_sort_index", t.pid, "0", "sort_index", gpuSort+n)
			}
			note("thread_name", t.pid, t.tid, "name", label)
			note("thread_sort_index", t.pid, t.tid, "sort_index", sort)
		}
		for lane := 1; lane < len(s.lanes.threads[t].open); lane++ {
			note("thread_name", t.pid, t.tid.lane(lane), "name", label+laneName(lane))
			note("thread_sort_index", t.pid, t.tid.lane(lane), "sort_index", sort)
		}
	}
	return err
}

// gpuSort puts GPUs below all processes, as Kineto does.
const gpuSort = 5_000_000

// streamName returns the name of the thread of a stream, and its place.
func streamName(tid who) (name string, sort int64) {
	n, err := strconv.ParseInt(string(tid), 10, 64)
	switch {
	case err != nil:
		return strings.Trim(string(tid), `"`), 0
	case n >= syncLane && n < laneStep:
		return fmt.Sprintf("stream %d (sync)", n-syncLane), n - syncLane
	}
	return fmt.Sprintf("stream %d", n), n
}
