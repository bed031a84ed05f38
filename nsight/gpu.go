package nsight

import (
	"context"
	"fmt"
	"regexp"

	"tracelake/schema"
)

// Tables of an export that hold the rows which are linked.
const (
	tableKernel  = "CUPTI_ACTIVITY_KIND_KERNEL"
	tableMemcpy  = "CUPTI_ACTIVITY_KIND_MEMCPY"
	tableMemset  = "CUPTI_ACTIVITY_KIND_MEMSET"
	tableGraph   = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
	tableRuntime = "CUPTI_ACTIVITY_KIND_RUNTIME"
	tableNVTX    = "NVTX_EVENTS"
)

// gpuTables are the tables of GPU work in the order in which their rows are
// numbered.
type gpuTables struct{ kernel, memcpy, memset, graph *read }

func (g *gpuTables) all() []*read { return []*read{g.kernel, g.memcpy, g.memset, g.graph} }

func (r *reader) readGPU(ctx context.Context) (g *gpuTables, err error) {
	common := func(more ...string) []want {
		return append(ints("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"), ints(more...)...)
	}
	g = &gpuTables{}
	for _, t := range []struct {
		name string
		to   **read
		cols []want
	}{
		{tableKernel, &g.kernel, common("demangledName", "shortName", "registersPerThread", "gridX", "gridY", "gridZ",
			"blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId", "graphId")},
		{tableMemcpy, &g.memcpy, common("bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "dstDeviceId", "graphNodeId", "graphId")},
		{tableMemset, &g.memset, common("bytes", "memKind", "graphNodeId", "graphId")},
		{tableGraph, &g.graph, common("graphId", "graphExecId")},
	} {
		if *t.to, err = r.collect(ctx, t.name, t.cols); err != nil {
			return nil, err
		}
		r.intervals(*t.to)
		r.see((*t.to).col("globalPid"))
	}
	return g, nil
}

// see notes the processes of imported rows.
func (r *reader) see(col *stored) {
	buf := make([]int64, blockRows)
	for i := range col.segs {
		s := &col.segs[i]
		if s.none {
			continue
		}
		s.fill(buf)
		last := schema.Null
		for _, v := range buf[:s.rows] {
			if v == schema.Null || v == last {
				continue
			}
			last = v
			r.seen[processKey(v)] = true
		}
	}
}

// gpuRows makes the rows of gpu_events.
func (r *reader) gpuRows(g *gpuTables) {
	rows := &Rows{Table: &schema.TableGPUEvents, names: r.names}
	add := func(t *read, kind schema.Kind, category string, more map[string]filler) {
		if t.n == 0 {
			return
		}
		cols := map[string]filler{
			"event_index": counting(t.first), "kind": constant(int64(kind)), "category": constant(r.names.put(category)),
			"start_ns": plain(t.col("start")), "dur_ns": combined(t.col("end"), t.col("start"), func(end, start int64) int64 { return duration(start, end) }),
			"device": plain(t.col("deviceId")), "context": plain(t.col("contextId")), "stream": plain(t.col("streamId")),
			"correlation": nonzero(t.col("correlationId")), "graph_id": nonzero(t.col("graphId")),
			"pid": mapped(t.col("globalPid"), processID), "global_pid": mapped(t.col("globalPid"), processKey),
		}
		for k, f := range more {
			cols[k] = f
		}
		rows.add(t.n, cols)
		r.res.Kinds[category] += int64(t.n)
	}
	k := g.kernel
	add(k, schema.Kernel, "kernel", map[string]filler{
		"name": r.kernelName(k), "short_name": mapped(k.col("shortName"), r.string),
		"registers_per_thread": plain(k.col("registersPerThread")), "graph_node_id": nonzero(k.col("graphNodeId")),
		"grid_x": plain(k.col("gridX")), "grid_y": plain(k.col("gridY")), "grid_z": plain(k.col("gridZ")),
		"block_x": plain(k.col("blockX")), "block_y": plain(k.col("blockY")), "block_z": plain(k.col("blockZ")),
		"shared_memory_bytes": combined(k.col("staticSharedMemory"), k.col("dynamicSharedMemory"), sum),
	})
	c := g.memcpy
	add(c, schema.Memcpy, "gpu_memcpy", map[string]filler{
		"name": eager(c.n, r.copyName(c)), "bytes": plain(c.col("bytes")), "graph_node_id": nonzero(c.col("graphNodeId")),
		"from_device": plain(c.col("srcDeviceId")), "to_device": plain(c.col("dstDeviceId")),
	})
	s := g.memset
	add(s, schema.Memset, "gpu_memset", map[string]filler{
		"name": eager(s.n, r.memsetName(s)), "bytes": plain(s.col("bytes")), "graph_node_id": nonzero(s.col("graphNodeId")),
	})
	add(g.graph, schema.Graph, "gpu_graph", map[string]filler{"name": eager(g.graph.n, r.graphName(g.graph))})
	r.res.GPU = rows
	r.res.Rows[rows.Table.Name] = int64(rows.n)
	if n := int64(g.graph.n); n > 0 {
		r.note(schema.GraphRows, n, fmt.Sprintf("%d launches of CUDA graphs were traced as a whole; the kernels inside were not traced", n))
	}
}

func sum(a, b int64) int64 {
	switch {
	case a == schema.Null:
		return b
	case b == schema.Null:
		return a
	}
	return a + b
}

// kernelName is the demangled name, else the short one.
func (r *reader) kernelName(k *read) filler {
	return combined(k.col("demangledName"), k.col("shortName"), func(long, short int64) int64 {
		n := schema.Null
		if long != schema.Null {
			n = r.string(long)
		}
		if n == schema.Null && short != schema.Null {
			n = r.string(short)
		}
		return n
	})
}

// copyKinds and memoryKinds are the words that CUPTI and Kineto use.
var copyKinds = []string{
	"Unknown", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP",
	"Unified HtoD", "Unified DtoH", "Unified DtoD",
}

var memoryKinds = []string{"Pageable", "Pinned", "Device", "Array", "Managed", "Device Static", "Managed Static", "Unknown"}

func word(list []string, v int64) string {
	if v >= 0 && v < int64(len(list)) {
		return list[v]
	}
	if v == schema.Null {
		return "Unknown"
	}
	return fmt.Sprint(v)
}

// copyName names a copy by its kinds, the way Kineto does.
func (r *reader) copyName(c *read) filler {
	kind, src, dst := c.col("copyKind"), c.col("srcKind"), c.col("dstKind")
	return func(out []int64) {
		kind.fill(out)
		from, to := make([]int64, len(out)), make([]int64, len(out))
		src.fill(from)
		dst.fill(to)
		known := map[[3]int64]int64{}
		for i := range out {
			k := [3]int64{out[i], from[i], to[i]}
			n, ok := known[k]
			if !ok {
				name := "Memcpy " + word(copyKinds, k[0])
				if k[1] != schema.Null && k[2] != schema.Null {
					name += " (" + word(memoryKinds, k[1]) + " -> " + word(memoryKinds, k[2]) + ")"
				}
				n = r.names.put(name)
				known[k] = n
			}
			out[i] = n
		}
	}
}

func (r *reader) memsetName(s *read) filler {
	mem := s.col("memKind")
	return func(out []int64) {
		mem.fill(out)
		for i, v := range out {
			name := "Memset"
			if v != schema.Null {
				name += " (" + word(memoryKinds, v) + ")"
			}
			out[i] = r.names.put(name)
		}
	}
}

func (r *reader) graphName(g *read) filler {
	id := g.col("graphId")
	return func(out []int64) {
		id.fill(out)
		for i, v := range out {
			name := "graph"
			if v != schema.Null {
				name = fmt.Sprintf("graph %d", v)
			}
			out[i] = r.names.put(name)
		}
	}
}

var apiVersion = regexp.MustCompile(`_v\d+$`)

// apiClass is the category of a call.
func apiClass(class int64) string {
	switch class {
	case 0:
		return "cuda_runtime"
	case 1:
		return "cuda_driver"
	case schema.Null:
		return "cuda_api"
	}
	return fmt.Sprintf("event_class_%d", class)
}

// launchRows makes the rows of launches.
func (r *reader) launchRows(t *read) {
	rows := &Rows{Table: &schema.TableLaunches, names: r.names}
	r.res.Launches = rows
	if t.n == 0 {
		return
	}
	r.intervals(t)
	r.see(t.col("globalTid"))
	var classes, stripped stringTable
	counts, unknown := r.counts(t.col("eventClass"), t.n), schema.Null
	for _, class := range r.distinct(t.col("eventClass")) {
		classes.set(class, r.names.put(apiClass(class)))
	}
	if counts[schema.Null] > 0 {
		unknown = r.names.put(apiClass(schema.Null))
	}
	for _, id := range r.distinct(t.col("nameId")) {
		if n := r.string(id); n != schema.Null {
			stripped.set(id, r.names.put(apiVersion.ReplaceAllString(r.names.list[n], "")))
		}
	}
	tid := t.col("globalTid")
	rows.add(t.n, map[string]filler{
		"event_index": counting(t.first), "category": func(out []int64) {
			t.col("eventClass").fill(out)
			for i, class := range out {
				if out[i] = unknown; class != schema.Null {
					out[i] = classes.get(class)
				}
			}
		}, "api": mapped(t.col("nameId"), stripped.get),
		"start_ns": plain(t.col("start")), "dur_ns": combined(t.col("end"), t.col("start"), func(end, start int64) int64 { return duration(start, end) }),
		"pid": mapped(tid, processID), "tid": mapped(tid, threadID), "global_pid": mapped(tid, processKey),
		"correlation": nonzero(t.col("correlationId")), "return_value": plain(t.col("returnValue")),
	})
	r.res.Rows[rows.Table.Name] = int64(rows.n)
	for class, n := range counts {
		r.res.Kinds[apiClass(class)] += n
	}
}

// distinct returns the values of a column, each once, in order of appearance.
func (r *reader) distinct(col *stored) (out []int64) {
	seen := map[int64]bool{}
	buf := make([]int64, blockRows)
	for i := range col.segs {
		s := &col.segs[i]
		if s.none {
			continue
		}
		s.fill(buf)
		for _, v := range buf[:s.rows] {
			if v != schema.Null && !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	return out
}

// counts returns how often each value of a column with few values occurs.
func (r *reader) counts(col *stored, rows int) map[int64]int64 {
	out := map[int64]int64{}
	if !col.some() {
		out[schema.Null] = int64(rows)
		return out
	}
	buf := make([]int64, blockRows)
	for i := range col.segs {
		s := &col.segs[i]
		s.fill(buf)
		for _, v := range buf[:s.rows] {
			out[v]++
		}
	}
	return out
}
