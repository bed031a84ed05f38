package nsight

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"tracelake/schema"
)

// hostTable is a table of durations on the host side that go to cpu_events.
type hostTable struct {
	table, category string
	process         string // column of the process or thread
	types           string // column of a number that names the row where there is no nameId
	words           []string
}

var hostTables = []hostTable{
	{"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", "cuda_sync", "globalPid", "syncType", []string{
		"Unknown", "Event synchronize", "Stream wait event", "Stream synchronize", "Context synchronize",
	}},
	{"CUPTI_ACTIVITY_KIND_OVERHEAD", "overhead", "globalTid", "overheadType", overheads},
	{"PROFILER_OVERHEAD", "profiler_overhead", "globalTid", "overheadType", overheads},
	{"OSRT_API", "osrt_api", "globalTid", "", nil},
	{"CUDNN_EVENTS", "cudnn", "globalTid", "", nil},
	{"CUBLAS_EVENTS", "cublas", "globalTid", "", nil},
}

// overheads are the names of ENUM_CUPTI_OVERHEAD_TYPE, without who it is for.
var overheads = []string{
	"Undefined", "Unknown", "Driver JIT compiler", "Buffer flush", "Instrumentation", "Resource creation/destruction",
	"Runtime module loading", "Lazy function loading", "Command buffer full",
}

// hostWants are the columns of these tables in the order of the constants.
func (h *hostTable) wants() []want {
	types := h.types
	if types == "" {
		types = "syncType" // which no such table has
	}
	return ints("start", "end", h.process, "nameId", types, "correlationId", "deviceId", "contextId", "streamId", "eventId")
}

const (
	hoStart = iota
	hoEnd
	hoProcess
	hoName
	hoType
	hoCorrelation
	hoDevice
	hoContext
	hoStream
	hoEvent
)

// findRefs notes the strings that rows refer to. Tables that are not kept are
// read for their IDs alone.
func (r *reader) findRefs(ctx context.Context, g *gpuTables, calls *read, v *nvtx) error {
	r.refer(g.kernel.col("demangledName"))
	r.refer(g.kernel.col("shortName"))
	r.refer(calls.col("nameId"))
	r.see(calls.col("globalTid"))
	for _, t := range []*read{v.ranges, v.marks} {
		r.refer(t.col("textId"))
		r.refer(t.col("jsonTextId"))
	}
	for i := range hostTables {
		h := &hostTables[i]
		err := r.scan(ctx, h.table, ints("nameId", h.process), func(b *batch) error {
			for i := range b.n {
				if id := cell(b, 0, i); id != schema.Null {
					r.refs.add(id)
				}
				if p := cell(b, 1, i); p != schema.Null {
					r.seen[processKey(p)] = true
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return r.scan(ctx, "ThreadNames", ints("nameId", "globalTid"), func(b *batch) error {
		for i := range b.n {
			if id, tid := cell(b, 0, i), cell(b, 1, i); id != schema.Null && tid != schema.Null && r.seen[processKey(tid)] {
				r.refs.add(id)
			}
		}
		return nil
	})
}

// stream reads a table for good: its rows are hashed, numbered and handed on.
func (r *reader) stream(ctx context.Context, table string, wants []want, row func(b *batch, i int, index int64) error) error {
	c := r.newCollector(wants, true)
	n := int64(0)
	err := r.scan(ctx, table, wants, func(b *batch) error {
		for i := range b.n {
			if err := row(b, i, r.events+n); err != nil {
				return err
			}
			n++
		}
		return c.add(b, nil)
	})
	if err != nil {
		return err
	}
	r.events += n
	_, err = c.finish(table)
	return err
}

// streams reads the tables that need no linking.
func (r *reader) streams(ctx context.Context, v *nvtx) error {
	host := r.newEmitter(&schema.TableCPUEvents)
	for i := range hostTables {
		if err := r.hostRows(ctx, host, &hostTables[i]); err != nil {
			return err
		}
	}
	if err := host.flush(); err != nil {
		return err
	}
	instants := r.newEmitter(&schema.TableInstants)
	if err := r.markRows(instants, v.marks); err != nil {
		return err
	}
	if err := r.memoryRows(ctx, instants); err != nil {
		return err
	}
	if err := instants.flush(); err != nil {
		return err
	}
	if err := r.counterRows(ctx); err != nil {
		return err
	}
	return r.metadataRows(ctx)
}

func (r *reader) hostRows(ctx context.Context, e *emitter, h *hostTable) error {
	return r.stream(ctx, h.table, h.wants(), func(b *batch, i int, index int64) error {
		if err := e.row(); err != nil {
			return err
		}
		r.res.Kinds[h.category]++
		e.int("event_index", index)
		e.text("category", h.category)
		name := schema.Null
		if id := cell(b, hoName, i); id != schema.Null {
			name = r.string(id)
		}
		kind := cell(b, hoType, i)
		switch {
		case name != schema.Null:
			e.name("name", name)
		case kind != schema.Null && kind >= 0 && kind < int64(len(h.words)) && h.words[kind] != "":
			e.text("name", h.words[kind])
		case kind != schema.Null && h.types != "":
			e.text("name", h.types+" "+strconv.FormatInt(kind, 10))
		}
		e.times(cell(b, hoStart, i), cell(b, hoEnd, i))
		e.process(cell(b, hoProcess, i), h.process == "globalTid")
		if c := cell(b, hoCorrelation, i); c != 0 {
			e.int("correlation", c)
		}
		e.int("device", cell(b, hoDevice, i))
		e.int("context", cell(b, hoContext, i))
		e.int("stream", cell(b, hoStream, i))
		if v := cell(b, hoEvent, i); v != schema.Null && v != 0xffffffff {
			e.text("args_json", fmt.Sprintf(`{"eventId":%d}`, v))
		}
		return nil
	})
}

// markRows makes instants of NVTX marks.
func (r *reader) markRows(e *emitter, t *read) error {
	if t.n == 0 {
		return nil
	}
	cols := map[string][]int64{}
	for name, f := range map[string]filler{
		"name": r.nvtxName(t), "domain": r.nvtxDomainName(t), "category": r.nvtxCategoryName(t), "payload": r.nvtxPayload(t),
		"start": plain(t.col("start")), "tid": plain(t.col("globalTid")), "index": plain(t.col("index")),
	} {
		v := make([]int64, t.n)
		if f == nil {
			f = constant(schema.Null)
		}
		f(v)
		cols[name] = v
	}
	r.res.Kinds["nvtx_mark"] += int64(t.n)
	for i := range t.n {
		if err := e.row(); err != nil {
			return err
		}
		e.int("event_index", cols["index"][i])
		e.text("category", "nvtx_mark")
		e.name("name", cols["name"][i])
		e.start(cols["start"][i])
		e.process(cols["tid"][i], true)
		args := map[string]string{}
		for _, k := range []string{"domain", "category", "payload"} {
			if n := cols[k][i]; n != schema.Null {
				args[k] = r.names.list[n]
			}
		}
		if err := e.args(args); err != nil {
			return err
		}
	}
	return nil
}

// args sets args_json, where there are any.
func (e *emitter) args(m map[string]string) error {
	if len(m) == 0 {
		return nil
	}
	text, err := json.Marshal(m) // keys are sorted
	if err == nil {
		e.text("args_json", string(text))
	}
	return err
}

// memoryRows makes instants of allocations on GPUs.
func (r *reader) memoryRows(ctx context.Context, e *emitter) error {
	wants := append(ints("start", "globalPid", "deviceId", "contextId", "address", "bytes", "memKind", "memoryOperationType", "correlationId", "streamId"), want{"name", text})
	return r.stream(ctx, "CUDA_GPU_MEMORY_USAGE_EVENTS", wants, func(b *batch, i int, index int64) error {
		if err := e.row(); err != nil {
			return err
		}
		r.res.Kinds["gpu_memory"]++
		e.int("event_index", index)
		e.text("category", "gpu_memory")
		e.start(cell(b, 0, i))
		e.process(cell(b, 1, i), false)
		e.int("device_id", cell(b, 2, i))
		e.int("device_type", 1)
		e.int("addr", cell(b, 4, i))
		bytes := cell(b, 5, i)
		switch cell(b, 7, i) {
		case 0:
			e.text("name", "allocation")
		case 1:
			e.text("name", "deallocation")
			if bytes != schema.Null {
				bytes = -bytes
			}
		}
		e.int("bytes", bytes)
		args := map[string]string{}
		if v := cell(b, 6, i); v != schema.Null {
			args["memory"] = word(memoryKinds, v)
		}
		for k, c := range map[string]int{"context": 3, "correlation": 8, "stream": 9} {
			if v := cell(b, c, i); v != schema.Null {
				args[k] = strconv.FormatInt(v, 10)
			}
		}
		if v := cell(b, 10, i); v != schema.Null {
			args["variable"] = b.texts.list[v]
		}
		return e.args(args)
	})
}

// counterRows makes counters of the metrics of GPUs.
func (r *reader) counterRows(ctx context.Context) error {
	type metric struct{ kind, id int64 }
	titles := map[metric]string{}
	err := r.scan(ctx, "TARGET_INFO_GPU_METRICS", append(ints("typeId", "metricId"), want{"metricName", text}), func(b *batch) error {
		for i := range b.n {
			if n := cell(b, 2, i); n != schema.Null && len(titles) < 1<<20 {
				titles[metric{cell(b, 0, i), cell(b, 1, i)}] = b.texts.list[n]
				r.hash("metric "+b.texts.list[n], uint64(cell(b, 1, i)))
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	e := r.newEmitter(&schema.TableCounters)
	err = r.stream(ctx, "GPU_METRICS", ints("timestamp", "typeId", "metricId", "value"), func(b *batch, i int, index int64) error {
		if err := e.row(); err != nil {
			return err
		}
		r.res.Kinds["gpu_metric"]++
		e.int("event_index", index)
		e.text("category", "gpu_metric")
		kind, id := cell(b, 1, i), cell(b, 2, i)
		name, ok := titles[metric{kind, id}]
		if !ok {
			name = "metric " + strconv.FormatInt(id, 10)
		}
		e.text("name", name)
		if kind != schema.Null {
			e.text("series", "GPU "+strconv.FormatInt(kind&0xff, 10))
		}
		e.start(cell(b, 0, i))
		e.number(cell(b, 3, i))
		return nil
	})
	if err != nil {
		return err
	}
	return e.flush()
}

// metadataRows names the processes and threads that imported rows belong to.
// A report lists every process of the machine; the others are left out.
func (r *reader) metadataRows(ctx context.Context) error {
	e := r.newEmitter(&schema.TableMetadata)
	put := func(index int64, kind string, global int64, thread bool, value string) error {
		if err := e.row(); err != nil {
			return err
		}
		r.hash(kind+" "+value, uint64(global))
		e.int("event_index", index)
		e.text("name", kind)
		e.process(global, thread)
		e.text("value", value)
		return nil
	}
	// Both tables are numbered by the rows that are kept: how many other
	// processes a machine had is nobody's business.
	err := r.scan(ctx, "PROCESSES", append(ints("globalPid"), want{"name", text}), func(b *batch) error {
		for i := range b.n {
			global, name := cell(b, 0, i), cell(b, 1, i)
			if global == schema.Null || name == schema.Null || !r.seen[processKey(global)] {
				continue
			}
			if err := put(r.events, "process_name", global, false, b.texts.list[name]); err != nil {
				return err
			}
			r.events++
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = r.scan(ctx, "ThreadNames", ints("globalTid", "nameId"), func(b *batch) error {
		for i := range b.n {
			global, id := cell(b, 0, i), cell(b, 1, i)
			if global == schema.Null || id == schema.Null || !r.seen[processKey(global)] {
				continue
			}
			n := r.string(id)
			if n == schema.Null {
				continue
			}
			if err := put(r.events, "thread_name", global, true, r.names.list[n]); err != nil {
				return err
			}
			r.events++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return e.flush()
}
