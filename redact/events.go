package redact

import (
	"strings"
)

// Rules of the keys of Kineto traces. What is not listed is replaced, keys
// included.

var (
	nameRule  = texts((*Policy).operator)
	wordRule  = texts(func(p *Policy, s string) string { return p.vocabulary(kindValue, s) })
	pathRule  = texts((*Policy).path)
	uuidRule  = texts(func(p *Policy, s string) string { return p.uuid(s) })
	versions  = texts((*Policy).version)
	hostRule  = texts(func(p *Policy, s string) string { return p.replace(kindHost, s) })
	whoRule   = &rule{text: (*Policy).who, number: integer}
	phaseRule = texts((*Policy).phase)
)

func (p *Policy) uuid(s string) string {
	if rest, ok := strings.CutPrefix(s, "GPU-"); ok {
		return "GPU-" + p.replace(kindUUID, rest)
	}
	if rest, ok := strings.CutPrefix(s, "MIG-"); ok {
		return "MIG-" + p.replace(kindUUID, rest)
	}
	return p.replace(kindUUID, s)
}

var version = pattern(`^\d+(\.\d+){0,3}((a|b|rc|\.post|\.dev)\d+)?`)

// version keeps the numbers of a version; what is built from goes.
func (p *Policy) version(s string) string {
	v := version().FindString(s)
	if v == s || isPlaceholder().MatchString(s) {
		return s
	}
	if v == "" {
		return p.replace(kindValue, s)
	}
	if rest := strings.TrimPrefix(s[len(v):], "+"); isPlaceholder().MatchString(rest) {
		return s
	}
	return v + "+" + p.replace(kindValue, s[len(v):])
}

// who decides about a process or thread that is a text.
func (p *Policy) who(s string) string {
	if plain().MatchString(s) && !ipOnly().MatchString(s) {
		return p.pidText(s)
	}
	return p.thread(s)
}

func (p *Policy) phase(s string) string {
	if len(s) <= 1 {
		return s
	}
	return p.replace(kindValue, s)
}

var publicCategory = pattern(`^(|Kernel|Memcpy|Memset|Operator|Runtime|Driver|User|Trace|ac2g|async|async_gpu|async_cpu_to_gpu|forward_backward|fwdbwd|kernel|cpu_op|user_annotation|gpu_user_annotation|gpu_memcpy|gpu_memset|external_correlation|(cuda|hip|xpu|mtia|glow|hpu|privateuse1)_(runtime|driver)|cpu_instant_event|python_function|overhead|mtia_ccp_events|mtia_insight|mtia_counters|cuda_sync|cuda_event|cuda_profiler_range|hpu_op|collective_comm|xpu_sync|xpu_scope_profiler|hardware_counters|critical_path|dynamo_timed|gpu_memory|gpu_metric|nvtx_mark|osrt_api|profiler_overhead|cudnn|cublas|gpu_graph)$`)

// category decides about a category; what our reader makes of its suffix stays.
func (p *Policy) category(s string) string {
	if publicCategory().MatchString(s) {
		return s
	}
	for _, suffix := range []string{"_runtime", "_driver"} {
		if base, ok := strings.CutSuffix(s, suffix); ok {
			return p.replace(kindName, base) + suffix
		}
	}
	return p.replace(kindName, s)
}

// argRules are the known arguments of events.
var argRules = func() map[string]*rule {
	out := map[string]*rule{}
	add := func(r *rule, keys ...string) {
		for _, k := range keys {
			out[k] = r
		}
	}
	add(numbers, "External id", "external id", "external ts", "correlation", "queued", "device", "context", "stream", "registers per thread",
		"shared memory", "shared size", "blocks per SM", "warps per SM", "grid", "block", "grid dim", "block dim", "est. achieved occupancy %",
		"theoretical occupancy %", "graph id", "graph node id", "priority", "channel", "channel_type", "bytes", "memory bandwidth (GB/s)",
		"fromDevice", "inDevice", "toDevice", "fromContext", "inContext", "toContext", "cbid", "cid", "src", "dst", "ptr", "size",
		"wait_on_stream", "wait_on_cuda_event_record_corr_id", "wait_on_cuda_event_id", "event_id", "Ev Idx", "Profiler Event Index",
		"Record function id", "Sequence number", "Input Dims", "Input dims", "Input Strides", "flops",
		"Trace iteration", "finished", "num_warps", "num_stages", "Python id", "Python parent id", "Python module id", "Addr", "Bytes",
		"Total Allocated", "Total Reserved", "Device Type", "Device Id", "In msg nelems", "Out msg nelems", "Group size", "In split size",
		"Out split size", "Process Group Ranks", "Global rank start", "Global rank stride", "Rank", "Src Rank", "Dst Rank",
		"Input Tensors start", "Output Tensors start", "Is asynchronized op", "Seq", "Op count", "hsa_queue", "sort_index", "value",
		"return value", "eventId", "end thread")
	add(wordRule, "Input type", "dtype", "Collective name", "Process Group Name", "Process Group Description", "kind", "cuda_sync_kind",
		"kernel_backend", "copy kind", "source memory", "target memory", "traced as", "nvtx", "Concrete Inputs")
	out["Concrete Inputs"] = numbers
	out["Fwd thread id"] = &rule{text: (*Policy).number, number: same}
	out["Trace name"] = nameRule
	out["kernel"] = texts((*Policy).kernel)
	out["Kernel"], out["kernel_name"], out["short name"] = out["kernel"], out["kernel"], out["kernel"]
	out["Call stack"] = texts((*Policy).stack)
	out["Module Hierarchy"] = texts(func(p *Policy, s string) string { return p.name(kindModule, s, false) })
	out["occupancy"] = &rule{members: map[string]*rule{}}
	for _, k := range []string{
		"activeBlocksPerMultiprocessor", "blockLimitRegs", "blockLimitSharedMem", "blockLimitWarps", "blockLimitBlocks",
		"blockLimitBarriers", "allocatedRegistersPerBlock", "allocatedSharedMemPerBlock",
	} {
		out["occupancy"].members[k] = numbers
	}
	out["occupancy"].members["limitingFactors"] = texts(func(p *Policy, s string) string {
		if limits().MatchString(s) {
			return s
		}
		return p.replace(kindValue, s)
	})
	return out
}()

var limits = pattern(`^(WARPS|REGS|SMEM|BLOCKS|BARRIERS|NONE|\|)*$`)

// eventRule returns the rule of an event by its phase, category and name.
func eventRule(phase, cat, name string) *rule {
	args := &rule{members: argRules}
	named := nameRule
	switch {
	case phase == "M":
		args = metadataArgs(name)
		named = texts(func(p *Policy, s string) string {
			switch s {
			case "process_name", "process_labels", "process_sort_index", "thread_name", "thread_sort_index":
				return s
			}
			return p.name(kindName, s, false)
		})
	case phase == "C":
		args = &rule{key: func(p *Policy, s string) string {
			if publicWords(s) {
				return s
			}
			return p.name(kindName, s, false)
		}, rest: numbers}
		named = texts(func(p *Policy, s string) string { return p.name(kindName, s, publicWords(s)) })
	case cat == "kernel" || cat == "Kernel":
		named = texts((*Policy).kernel)
	case cat == "python_function":
		named = texts((*Policy).function)
	case strings.HasSuffix(cat, "_runtime") || strings.HasSuffix(cat, "_driver") || cat == "Runtime" || cat == "Driver":
		named = texts((*Policy).api)
	case cat == "overhead" || cat == "cuda_sync" || cat == "gpu_memory" || cat == "profiler_overhead" || cat == "gpu_metric":
		named = texts(func(p *Policy, s string) string {
			return p.name(kindName, s, publicWords(s) || overheadName().MatchString(s))
		})
	case cat == "ac2g" || cat == "fwdbwd" || phase == "s" || phase == "f" || phase == "t":
		named = texts(func(p *Policy, s string) string {
			return p.name(kindName, s, publicCategory().MatchString(s) || s == "launch" || s == "fwd_bwd" || apiName().MatchString(s))
		})
	}
	return &rule{members: map[string]*rule{
		"ph": phaseRule, "cat": texts((*Policy).category), "name": named, "pid": whoRule, "tid": whoRule, "ts": numbers, "dur": numbers,
		"tts": numbers, "tdur": numbers, "id": numbers, "s": phaseRule, "bp": phaseRule, "args": args,
	}}
}

var overheadName = pattern(`^(Driver Compiler|Driver compiler|Buffer Flush|Instrumentation|Resource|Runtime Triggered Module Loading|Module loading|Lazy Function Loading|Command Buffer Full|Command buffer full|Undefined|Driver JIT compiler|Buffer flush|Resource creation/destruction|Runtime module loading|Lazy function loading|Activity Buffer Request|Unknown|Stream Sync|Event Sync|Stream Wait Event|Context Sync|Event synchronize|Stream wait event|Stream synchronize|Context synchronize|allocation|deallocation)$`)

// metadataArgs is the rule of the arguments of a metadata event.
func metadataArgs(name string) *rule {
	label := texts((*Policy).thread)
	if strings.HasPrefix(name, "process") {
		label = texts((*Policy).process)
	}
	order := numbers
	if name == "process_sort_index" || name == "thread_sort_index" {
		order = &rule{text: (*Policy).number, number: integer}
	}
	return &rule{members: map[string]*rule{"name": label, "labels": label, "sort_index": order}}
}

// headerRules are the known keys beside traceEvents.
var headerRules = func() map[string]*rule {
	out := map[string]*rule{}
	for _, k := range []string{
		"schemaVersion", "baseTimeNanoseconds", "record_shapes", "profile_memory", "with_stack", "with_modules", "with_flops",
		"DISABLE_CUPTI_LAZY_REINIT", "CUDA_GRAPH_TRACE_OPTIONS:MODE", "PT_PROFILER_ATTEMPT_INDEX",
	} {
		out[k] = numbers
	}
	for _, k := range []string{
		"cupti_version", "cuda_runtime_version", "cuda_driver_version", "hip_runtime_version", "hip_driver_version", "roctracer_version",
		"rocprofiler-sdk_version", "vllm_version", "EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION",
	} {
		out[k] = versions
	}
	out["displayTimeUnit"] = texts(func(p *Policy, s string) string {
		if s == "ms" || s == "ns" {
			return s
		}
		return p.replace(kindValue, s)
	})
	out["CUDA_GRAPH_TRACE_OPTIONS:MODE"] = wordRule
	out["host_name"] = hostRule
	out["trace_id"] = uuidRule
	out["traceName"] = pathRule
	out["tracelake_slice"] = &rule{members: map[string]*rule{"trace_id": uuidRule, "from_ns": numbers, "to_ns": numbers, "device": numbers, "iteration": numbers}}
	group := &rule{members: map[string]*rule{"pg_name": wordRule, "pg_desc": wordRule, "backend_config": wordRule, "pg_size": numbers, "ranks": numbers}}
	out["distributedInfo"] = &rule{members: map[string]*rule{
		"backend": wordRule, "rank": numbers, "world_size": numbers, "pg_count": numbers, "pg_config": group, "nccl_version": versions,
	}}
	device := map[string]*rule{"name": texts((*Policy).gpu), "uuid": uuidRule}
	for _, k := range []string{
		"id", "totalGlobalMem", "computeMajor", "computeMinor", "major", "minor", "maxThreadsPerBlock", "maxThreadsPerMultiprocessor", "regsPerBlock",
		"warpSize", "sharedMemPerBlock", "numSms", "regsPerMultiprocessor", "sharedMemPerBlockOptin", "sharedMemPerMultiprocessor",
		"maxSharedMemoryPerMultiProcessor", "maxComputeUnits", "maxWorkGroupSize", "maxClockFrequency", "maxMemAllocSize", "localMemSize",
	} {
		device[k] = numbers
	}
	device["driverVersion"] = versions
	out["deviceProperties"] = &rule{members: device}
	out["computeProperties"] = out["deviceProperties"]
	return out
}()

// Names of products: a maker or a line, then what products are called, and numbers.
var (
	productMaker = pattern(`^(NVIDIA|AMD|Intel\(R\)|Tesla|GeForce|Quadro|Radeon|Instinct|GRID) `)
	productWord  = pattern(`^[A-Z]{0,4}[0-9]{1,5}[A-Za-z]{0,3}$`)
	productWords = func() map[string]bool {
		out := map[string]bool{}
		for _, w := range strings.Fields(`nvidia amd intel r tesla geforce quadro radeon instinct grid rtx gtx gt titan mx x xp v xt xtx gre
			ti super pro graphics gpu device data center max flex arc xe iris uhd vii fury vega navi oam laptop mobile nano orin jetson thor
			tegra agx nx xavier drive grace hopper blackwell ampere ada turing generation pcie sxm nvl hbm vgpu mig superchip dgx spark
			server workstation edition q design frontier with`) {
			out[w] = true
		}
		return out
	}()
)

// gpu keeps the name of a product.
func (p *Policy) gpu(s string) string {
	if s == "" {
		return s
	}
	known := productMaker().MatchString(s)
	for _, w := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" ()./-", r) }) {
		known = known && (productWords[strings.ToLower(w)] || productWord().MatchString(w))
	}
	if known {
		return s
	}
	return p.replace(kindValue, s)
}
