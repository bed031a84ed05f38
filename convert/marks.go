package convert

import (
	"strings"

	"tracelake/analyze/link"
	"tracelake/schema"
)

// addSpans finds the iteration ranges of the trace. Where several families of
// marks occur, only the most specific one is used for linking.
func (m *model) addSpans(marks *link.Marks, names []string) {
	r := m.res.ranges
	name, onGPU := r.Values("name"), r.Values("on_gpu")
	process := "pid"
	if m.res.byProcess {
		process = "global_pid"
	}
	pid, tid := m.threads(r, process)
	index := r.Values("event_index")
	// What was imported from text logs was marked by no thread of the program.
	logged := func(category int64) bool {
		return m.res.byProcess && category != schema.Null && strings.HasPrefix(names[category], "nvtxt_")
	}
	category := r.Values("category")
	byName := map[int64]link.Mark{}
	m.marks.refs = make([]schema.EntityRef, r.Len())
	best := link.NoFamily
	found := make([]link.Mark, r.Len())
	for i := range found {
		if name[i] == schema.Null || onGPU[i] == 1 || logged(category[i]) {
			continue
		}
		k, ok := byName[name[i]]
		if !ok {
			k, _ = marks.Match(names[name[i]])
			byName[name[i]] = k
		}
		found[i] = k
		m.marks.refs[i] = k.Ref
		best = link.ChooseFamily(best, k.Family)
	}
	distinct := map[schema.EntityRef]bool{}
	steps := int64(0)
	for i, k := range found {
		if k.Family == link.NoFamily || k.Family != best || m.ranges.end[i] == schema.Null {
			continue
		}
		distinct[k.Ref] = true
		steps++
		m.trace.Spans = append(m.trace.Spans, schema.Span{
			PID: pid[i], TID: tid[i], Start: m.ranges.start[i], End: m.ranges.end[i],
			Ref: k.Ref, EventIndex: index[i], ProcessWide: k.ProcessWide,
		})
		if m.marks.producer == "" {
			m.marks.producer = k.Ref.Producer
		}
	}
	m.marks.distinct = int64(len(distinct))
	if best == link.EngineStep || best == link.EngineBatch { // names repeat: every range is a step
		m.marks.distinct = steps
	}
	d := m.res.diags
	switch {
	case best != link.NoFamily:
		d.Add(schema.IterationMarks, schema.Null, schema.Null, steps, "iterations taken from "+best.String())
	case m.res.gpu.Len() > 0:
		d.Add(schema.NoIterations, schema.Null, schema.Null, 1, "no stormlog range, engine step (vLLM, SGLang, xDiT) or ProfilerStep found")
	}
}

// rangeColumns are the computed columns of ranges.
func (m *model) rangeColumns() map[string]func() source {
	cols := timeColumns(m.ranges)
	r := m.res.ranges
	ref := func(part func(schema.EntityRef) string) func() source {
		return func() source {
			src := source{vals: make([]int64, r.Len())}
			ids := map[string]int64{}
			for i, x := range m.marks.refs {
				src.vals[i] = schema.Null
				if x == (schema.EntityRef{}) {
					continue
				}
				id, ok := ids[part(x)]
				if !ok {
					id = int64(len(src.dict))
					ids[part(x)] = id
					src.dict = append(src.dict, part(x))
				}
				src.vals[i] = id
			}
			return src
		}
	}
	cols["iteration_producer"] = ref(func(x schema.EntityRef) string { return x.Producer })
	cols["iteration_id"] = ref(func(x schema.EntityRef) string { return x.ID })
	step := func(pick func(link.EngineStepInfo) schema.Opt[int64]) func() source {
		return func() source {
			src := source{vals: make([]int64, r.Len())}
			any := false
			for i, x := range m.marks.refs {
				src.vals[i] = schema.Null
				if x.Producer != "vllm" {
					continue
				}
				if s, ok := link.ParseEngineStep(x.ID); ok {
					if v := pick(s); v.OK {
						src.vals[i] = v.V
						any = true
					}
				}
			}
			if !any {
				src.vals = nil
			}
			return src
		}
	}
	cols["context_requests"] = step(func(s link.EngineStepInfo) schema.Opt[int64] { return schema.Some(s.ContextRequests) })
	cols["context_tokens"] = step(func(s link.EngineStepInfo) schema.Opt[int64] { return s.ContextTokens })
	cols["generation_requests"] = step(func(s link.EngineStepInfo) schema.Opt[int64] { return schema.Some(s.GenerationRequests) })
	cols["generation_tokens"] = step(func(s link.EngineStepInfo) schema.Opt[int64] { return s.GenerationTokens })
	return cols
}
