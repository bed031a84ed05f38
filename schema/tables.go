package schema

// The helpers below keep the declarations readable: req declares a column
// that always has a value, opt one that may be null.
func req(name string, t Type, unit, doc string) Column {
	return Column{Name: name, Type: t, Unit: unit, Since: 1, Doc: doc}
}

func opt(name string, t Type, unit, doc string) Column {
	return Column{Name: name, Type: t, Nullable: true, Unit: unit, Since: 1, Doc: doc}
}

func cols(groups ...[]Column) []Column {
	out := []Column{req(TraceIDColumn, String, "", "trace that the row belongs to; joins every table to traces")}
	for _, g := range groups {
		out = append(out, g...)
	}
	return out
}

// Columns that several tables share.
var (
	colIndex = req("event_index", Int64, "", "position of the event in the source, from 0; unique within a trace")
	colCat   = opt("category", String, "", "category as the source wrote it; null where it wrote none")
	colName  = opt("name", String, "", "name as the source wrote it; null where it wrote none")

	colStart = opt("start_ns", Int64, "ns", "start; absolute where traces.clock is epoch; null where the source has no usable time")
	colDur   = opt("dur_ns", Int64, "ns", "duration as recorded, negative values included; null where missing")
	colEnd   = opt("end_ns", Int64, "ns", "start_ns + dur_ns; null where the duration is missing or negative")
	colFlag  = opt("time_flag", String, "", "what is wrong with the times: negative_duration, missing_duration, zero_time, overruns_next, bad_time; null where nothing is")

	colPID     = opt("pid", Int64, "", "process ID as recorded; null where the source has text there")
	colTID     = opt("tid", Int64, "", "thread ID as recorded; null where the source has text there")
	colPIDText = opt("pid_text", String, "", "process as recorded where it is text and not a number")
	colTIDText = opt("tid_text", String, "", "thread as recorded where it is text and not a number")

	colGlobalPID = opt("global_pid", Int64, "", "process as Nsight Systems counts it: host, virtual machine and process ID in one number; tells processes of one report apart; null for other sources")

	colExternal = opt("external_id", Int64, "", "External id: the operator that caused the event")
	colArgs     = opt("args_json", String, "", "arguments that have no column of their own, as a JSON object")

	colsTime   = []Column{colStart, colDur, colEnd, colFlag}
	colsThread = []Column{colPID, colTID, colPIDText, colTIDText, colGlobalPID}

	colsIteration = []Column{
		opt("iteration_producer", String, "", "who marked the iteration: the producer of a stormlog range, ProfilerStep, vllm, sglang, xdit, or the name given with --range-pattern"),
		opt("iteration_id", String, "", "iteration within its producer"),
		opt("iteration_range", Int64, "", "event_index of the row in ranges that holds the launch; tells apart iterations that share an ID"),
	}

	colsCollective = []Column{
		opt("collective_name", String, "", "collective operation"),
		opt("collective_dtype", String, "", "element type of the collective"),
		opt("in_msg_nelems", Int64, "elements", "elements sent"),
		opt("out_msg_nelems", Int64, "elements", "elements received"),
		opt("group_size", Int64, "ranks", "ranks in the process group"),
		opt("process_group_name", String, "", "name of the process group"),
		opt("process_group_desc", String, "", "description of the process group"),
		opt("process_group_ranks", String, "", "ranks of the process group as recorded"),
		opt("in_split_size", String, "", "split sizes sent, as recorded"),
		opt("out_split_size", String, "", "split sizes received, as recorded"),
		opt("collective_seq", Int64, "", "sequence number of the collective within its group"),
		opt("src_rank", Int64, "", "source rank"),
		opt("dst_rank", Int64, "", "destination rank"),
	}

	colsGeometry = []Column{
		opt("grid_x", Int64, "blocks", "grid size in x"),
		opt("grid_y", Int64, "blocks", "grid size in y"),
		opt("grid_z", Int64, "blocks", "grid size in z"),
		opt("block_x", Int64, "threads", "block size in x"),
		opt("block_y", Int64, "threads", "block size in y"),
		opt("block_z", Int64, "threads", "block size in z"),
		opt("shared_memory_bytes", Int64, "bytes", "shared memory per block, static and dynamic"),
	}
)

// The tables of a dataset.
var (
	TableTraces = Table{
		Name: "traces", Row: "an imported file", Order: "one row",
		Doc: "One row per imported file, whatever its outcome.",
		Columns: cols([]Column{
			req("outcome", String, "", "ok: read in full; repaired: read in full after repairs of the text; partial: something is missing or was set aside; rejected: no rows"),
			opt("outcome_reason", String, "", "first cause where the outcome is not ok"),
			opt("duplicate_of", String, "", "trace_id of the trace with the same content that holds the rows; this one then has none"),
			req("run", String, "", "run that the trace was filed under"),
			req("source", String, "", "kind of input: kineto, nsys (Nsight Systems); tables for the tables that a tracer wrote"),
			req("path", String, "", "path as given; the directory of the job for tables"),
			opt("source_bytes", Int64, "bytes", "size of the file as stored"),
			opt("json_bytes", Int64, "bytes", "size of the text after decompression; of an Nsight Systems export its size"),
			req("content_digest", String, "", "BLAKE3-256 of the content: of a trace the text after decompression, of an Nsight Systems export all that is imported, which is the same for every export format; of tables their files and the keys of their job; of a rejected input the bytes as stored"),
			opt("host", String, "", "host_name of the header"),
			opt("rank", Int64, "", "rank; null where nothing says it"),
			opt("rank_source", String, "", "where rank comes from: content, file_name, option"),
			opt("rank_in_name", Int64, "", "rank that the file name states, also where the content overrules it"),
			opt("world_size", Int64, "ranks", "ranks of the job"),
			req("clock", String, "", "epoch: start_ns counts from the Unix epoch; relative: from a moment that the source does not tell"),
			opt("base_ns", Int64, "ns", "base that was added to every recorded time; null where the source has none"),
			opt("resolution_ns", Int64, "ns", "finest step seen in the recorded times (1000 for whole microseconds)"),
			opt("start_ns", Int64, "ns", "earliest start of any timed event"),
			opt("end_ns", Int64, "ns", "latest end of any timed event"),
			opt("trace_uuid", String, "", "trace_id of the header"),
			opt("engine", String, "", "serving engine: vllm where the header names its version"),
			opt("engine_version", String, "", "version of the serving engine"),
			opt("cupti_version", String, "", "CUPTI version of the header"),
			opt("cuda_runtime_version", String, "", "CUDA runtime version of the header"),
			opt("cuda_driver_version", String, "", "CUDA driver version of the header"),
			opt("hip_runtime_version", String, "", "HIP runtime version of the header"),
			opt("distributed_backend", String, "", "backend of distributedInfo"),
			opt("process_groups_json", String, "", "pg_config of distributedInfo, as JSON"),
			opt("header_json", String, "", "header keys without a column, as a JSON object"),
			req("events", Int64, "", "members of the event array"),
			req("gpu_events", Int64, "", "rows in gpu_events"),
			req("launches", Int64, "", "rows in launches"),
			req("ranges", Int64, "", "rows in ranges"),
			req("cpu_events", Int64, "", "rows in cpu_events"),
			req("linked_gpu_events", Int64, "", "GPU events with a launch"),
			req("ambiguous_gpu_events", Int64, "", "GPU events with more than one possible launch"),
			req("iteration_gpu_events", Int64, "", "GPU events attributed to an iteration"),
			opt("iteration_producer", String, "", "which marks iterations were taken from"),
			req("iterations", Int64, "", "distinct iterations marked"),
			req("lost_events", Int64, "", "events that could not be read"),
			req("repairs", Int64, "", "repairs of the text"),
			opt("model", String, "", "model that was traced, where the trace lies in the output of collect; joins with revision, framework and mode to the tables of tracers"),
			opt("revision", String, "", "revision of the model"),
			opt("framework", String, "", "huggingface or vllm, where the trace lies in the output of collect"),
			opt("mode", String, "", "eval or train, where the trace lies in the output of collect"),
			opt("tracer", String, "", "tracer of collect that made the trace"),
			opt("tracer_version", String, "", "version of the tracer"),
			opt("job_key", String, "", "digest of everything that determined the job of collect: equal for repetitions, different for another dtype, device or workload"),
			req("importer_version", String, "", "version of tracelake"),
			req("schema_version", Int64, "", "version of the table declarations"),
		}),
	}

	TableDevices = Table{
		Name: "devices", Row: "a GPU of a trace", Order: "devices that an event ran on by ordinal and process, then others as listed",
		Doc: "GPUs that the header lists or that an event ran on. Where the source names the process of GPU work (Nsight Systems), ordinals count within a process and a row is a process's device. Busy time is the exact union over all streams.",
		Columns: cols([]Column{
			opt("ordinal", Int64, "", "device ordinal; null for GPU events that name no device"),
			opt("pid", Int64, "", "process whose ordinal it is; null where the source does not say"),
			colGlobalPID,
			opt("name", String, "", "product name"),
			opt("uuid", String, "", "UUID of the GPU"),
			opt("uuid_source", String, "", "trace, option or execution_log"),
			opt("memory_bytes", Int64, "bytes", "global memory"),
			opt("sm_count", Int64, "", "multiprocessors or compute units"),
			opt("compute_major", Int64, "", "compute capability, major"),
			opt("compute_minor", Int64, "", "compute capability, minor"),
			opt("warp_size", Int64, "threads", "threads per warp or wavefront"),
			req("gpu_events", Int64, "", "GPU events on the device"),
			req("excluded_events", Int64, "", "GPU events left out of the times below because of time_flag"),
			req("busy_ns", Int64, "ns", "length of the union of all GPU events"),
			req("launch_span_ns", Int64, "ns", "length of the union of launch-level activity spans"),
			req("summed_ns", Int64, "ns", "plain sum of durations"),
			opt("first_ns", Int64, "ns", "start of the first GPU event"),
			opt("last_ns", Int64, "ns", "end of the last GPU event"),
			opt("properties_json", String, "", "device properties without a column, as a JSON object"),
		}),
	}

	TableGPUEvents = Table{
		Name: "gpu_events", Row: "a kernel, copy, memset or graph-level launch", Order: "start_ns, then event_index; rows without a start last",
		Doc: "GPU work. GPU annotations are in ranges and never counted as work.",
		Columns: cols(
			[]Column{colIndex, req("kind", String, "", "gpu_kernel, gpu_memcpy, gpu_memset, or gpu_graph for a CUDA graph traced as a whole, whose kernels are not told apart"), colCat, colName, opt("short_name", String, "", "name of a kernel without namespace, template and function arguments, where the source has one beside the full name")},
			colsTime,
			[]Column{
				opt("clipped_dur_ns", Int64, "ns", "duration up to the next start on the stream, where time_flag is overruns_next"),
				opt("device", Int64, "", "device ordinal"),
				opt("context", Int64, "", "CUDA context"),
				opt("stream", Int64, "", "stream"),
				opt("correlation", Int64, "", "correlation ID; null where the source wrote none or 0"),
				opt("graph_id", Int64, "", "CUDA graph; null outside graphs"),
				opt("graph_node_id", Int64, "", "node in the CUDA graph"),
			},
			colsGeometry,
			[]Column{
				opt("registers_per_thread", Int64, "", "registers per thread"),
				opt("blocks_per_sm", Float64, "", "blocks per multiprocessor"),
				opt("warps_per_sm", Float64, "", "warps per multiprocessor"),
				opt("occupancy_pct", Float64, "%", "estimated achieved occupancy"),
				opt("queued", Int64, "", "queued as recorded"),
				opt("priority", Int64, "", "stream priority"),
				opt("bytes", Int64, "bytes", "bytes copied or set"),
				opt("bandwidth_gbps", Float64, "GB/s", "memory bandwidth as recorded"),
				opt("copy_kind", String, "", "HtoD, DtoH, DtoD, PtoP, …"),
				opt("src_memory", String, "", "memory copied from: Pageable, Pinned, Device, …"),
				opt("dst_memory", String, "", "memory copied to"),
				opt("from_device", Int64, "", "source device of a peer copy"),
				opt("to_device", Int64, "", "destination device of a peer copy"),
				opt("in_device", Int64, "", "device that ran a peer copy"),
			},
			colsCollective,
			[]Column{colExternal},
			colsThread,
			[]Column{
				opt("launch_id", Int64, "", "event_index of the call in launches that launched this work; null where there is none or more than one"),
				opt("link_method", String, "", "how launch_id was found: correlation or external_id"),
				req("link_status", String, "", "linked, unlinked or ambiguous"),
			},
			colsIteration,
			[]Column{opt("unresolved_reason", String, "", "why there is no iteration: no_launch_record, launch_outside_iteration_range, ambiguous_iteration_range, or ambiguous_launch where several processes used the correlation ID"), colArgs},
		),
	}

	TableLaunches = Table{
		Name: "launches", Row: "a runtime or driver call", Order: "start_ns, then event_index; rows without a start last",
		Doc: "Calls into the CUDA, HIP, XPU, MTIA or other runtime or driver, whether they launch GPU work or not.",
		Columns: cols(
			[]Column{colIndex, colCat, opt("api", String, "", "name of the call, without version suffix")},
			colsTime, colsThread,
			[]Column{
				opt("correlation", Int64, "", "correlation ID; null where the source wrote none or 0"),
				colExternal,
				opt("cbid", Int64, "", "CUPTI callback ID"),
				opt("stream", Int64, "", "stream, where the call names it"),
				opt("bytes", Int64, "bytes", "bytes, where the call names them"),
				opt("return_value", Int64, "", "what the call returned, where the source has it (Nsight Systems): 0 is success"),
				opt("kernel", String, "", "kernel, where the call names it (ROCm)"),
			},
			colsGeometry,
			[]Column{
				req("gpu_event_count", Int64, "", "GPU events linked to the call"),
				req("is_superseded", Bool, "", "a later call of the same process has the same correlation ID and takes the links"),
			},
			colsIteration,
			[]Column{opt("unresolved_reason", String, "", "why there is no iteration"), colArgs},
		),
	}

	TableRanges = Table{
		Name: "ranges", Row: "an annotation", Order: "start_ns, then event_index; rows without a start last",
		Doc: "User annotations on the CPU, their projections on the GPU, and NVTX ranges.",
		Columns: cols(
			[]Column{colIndex, colCat, colName, opt("domain", String, "", "NVTX domain; null for the default domain")},
			colsTime, colsThread,
			[]Column{
				opt("end_tid", Int64, "", "thread on which an NVTX range ended, where it is another one"),
				opt("nvtx_category", String, "", "NVTX category"),
				opt("payload", String, "", "NVTX payload: a number, or JSON"),
				req("on_gpu", Bool, "", "a projection of the annotation on a GPU stream"),
				opt("device", Int64, "", "device of a GPU annotation"),
				opt("stream", Int64, "", "stream of a GPU annotation"),
				colExternal,
				opt("record_function_id", Int64, "", "Record function id"),
				opt("ev_idx", Int64, "", "Ev Idx"),
				opt("iteration_producer", String, "", "producer, where the name marks an iteration"),
				opt("iteration_id", String, "", "iteration, where the name marks one"),
				opt("context_requests", Int64, "", "requests in prefill, where the name tells (vLLM)"),
				opt("context_tokens", Int64, "", "tokens in prefill"),
				opt("generation_requests", Int64, "", "requests in decode"),
				opt("generation_tokens", Int64, "", "tokens in decode"),
				colArgs,
			},
		),
	}

	TableCPUEvents = Table{
		Name: "cpu_events", Row: "any other duration event", Order: "as in the source",
		Doc: "Operators, Python functions, overhead, synchronisation and every other duration event that no other table holds. Rows keep the order of the source, because sorting them would need memory in proportion to the file.",
		Columns: cols(
			[]Column{colIndex, colCat, colName},
			colsTime, colsThread,
			[]Column{
				colExternal,
				opt("ev_idx", Int64, "", "Ev Idx, or Profiler Event Index"),
				opt("record_function_id", Int64, "", "Record function id; joins to rf_id of an execution trace"),
				opt("sequence_number", Int64, "", "Sequence number: joins forward and backward"),
				opt("fwd_thread_id", Int64, "", "Fwd thread id"),
				opt("input_dims", String, "", "Input Dims as JSON"),
				opt("input_types", String, "", "Input type as JSON"),
				opt("input_strides", String, "", "Input Strides as JSON"),
				opt("concrete_inputs", String, "", "Concrete Inputs as JSON"),
				opt("call_stack", String, "", "Call stack, frames separated by semicolons"),
				opt("module_hierarchy", String, "", "Module Hierarchy"),
				opt("flops", Int64, "FLOP", "floating-point operations as estimated by the profiler"),
				opt("python_id", Int64, "", "Python id"),
				opt("python_parent_id", Int64, "", "Python parent id"),
				opt("python_module_id", Int64, "", "Python module id"),
				opt("correlation", Int64, "", "correlation ID of a synchronisation or other device-side record"),
				opt("device", Int64, "", "device of a synchronisation or other device-side record"),
				opt("context", Int64, "", "context of a synchronisation or other device-side record"),
				opt("stream", Int64, "", "stream of a synchronisation or other device-side record"),
			},
			colsCollective,
			[]Column{
				opt("pairing", String, "", "for durations written as separate begin and end events: paired, no_end or no_begin"),
				opt("end_index", Int64, "", "event_index of the end event, where pairing is paired"),
				colArgs,
			},
		),
	}

	TableInstants = Table{
		Name: "instants", Row: "a memory record or other instant", Order: "as in the source",
		Doc: "Instant events, and events of phases that no other table holds.",
		Columns: cols(
			[]Column{colIndex, opt("phase", String, "", "ph as recorded"), colCat, colName, colStart},
			colsThread,
			[]Column{
				opt("scope", String, "", "s: g(lobal), p(rocess) or t(hread)"),
				opt("dur_ns", Int64, "ns", "duration, where the event has one"),
				opt("id", String, "", "id, where the event has one"),
				opt("addr", Int64, "", "memory address (bit pattern)"),
				opt("bytes", Int64, "bytes", "bytes allocated; negative when freed"),
				opt("total_allocated_bytes", Int64, "bytes", "allocated on the device after the event"),
				opt("total_reserved_bytes", Int64, "bytes", "reserved on the device after the event"),
				opt("device_type", Int64, "", "c10 device type: 0 CPU, 1 CUDA, …"),
				opt("device_id", Int64, "", "device ordinal; -1 for the CPU"),
				opt("ev_idx", Int64, "", "Ev Idx"),
				colArgs,
			},
		),
	}

	TableCounters = Table{
		Name: "counters", Row: "a sample of one counter series", Order: "as in the source",
		Doc: "Counter events, one row per series of the event; its first row has what stands beside the series.",
		Columns: cols(
			[]Column{colIndex, colCat, colName, opt("series", String, "", "series within the event; null where the event has no values"), colStart},
			colsThread,
			[]Column{
				opt("value", Float64, "", "sample; null where it is not a number"),
				opt("value_int", Int64, "", "sample where it is an integer, exact"),
				opt("value_text", String, "", "sample where it is not a number"),
				opt("id", String, "", "id, where the event has one: counters of one name and different ids are different ones"),
				colArgs,
			},
		),
	}

	TableFlows = Table{
		Name: "flows", Row: "an end of an arrow", Order: "as in the source",
		Doc: "Flow events: arrows from a launch to GPU work (ac2g), from forward to backward (fwdbwd), and others.",
		Columns: cols(
			[]Column{colIndex, req("phase", String, "", "s start, t step, f end"), colCat, colName, colStart},
			colsThread,
			[]Column{
				opt("id", Int64, "", "flow ID; both ends of an arrow share category and ID"),
				opt("id_text", String, "", "flow ID where it is text"),
				opt("bind_point", String, "", "bp: e binds to the enclosing slice"),
				colArgs,
			},
		),
	}

	TableMetadata = Table{
		Name: "metadata", Row: "a metadata event", Order: "as in the source",
		Doc: "Names, labels and sort indices of processes and threads.",
		Columns: cols(
			[]Column{colIndex, opt("name", String, "", "process_name, process_labels, process_sort_index, thread_name, thread_sort_index, …"), colStart},
			colsThread,
			[]Column{
				opt("value", String, "", "the name or label given"),
				opt("sort_index", Int64, "", "the sort index given"),
				colCat, colArgs,
			},
		),
	}

	TableActivities = Table{
		Name: "activities", Row: "an activity record at the chosen detail", Order: "first event of the record in the source",
		Doc: "GPU work grouped by launch, device and kind (detail launch), or one row per GPU event (detail kernel). Events with a time_flag of negative_duration, missing_duration, zero_time or bad_time are left out of the times.",
		Columns: cols(
			[]Column{
				req("activity_id", Int64, "", "number of the record within the trace, from 1"),
				req("detail", String, "", "launch or kernel"),
				req("kind", String, "", "gpu_kernel, gpu_memcpy, gpu_memset or gpu_graph"),
				opt("first_name", String, "", "name of the first event in source order"),
				req("event_count", Int64, "", "GPU events in the record"),
				opt("start_ns", Int64, "ns", "earliest start"),
				opt("end_ns", Int64, "ns", "latest end"),
				req("busy_ns", Int64, "ns", "length of the union of the events"),
				req("summed_ns", Int64, "ns", "plain sum of the durations"),
				{Name: "intervals", Type: Intervals, Nullable: true, Unit: "ns", Since: 1, Doc: "disjoint busy intervals relative to start_ns; null for a record of one event"},
				opt("device", Int64, "", "device ordinal"),
				opt("device_uuid", String, "", "UUID of the GPU where known"),
				opt("stream", Int64, "", "stream, where all events share one"),
				opt("correlation", Int64, "", "correlation ID"),
				opt("graph_id", Int64, "", "CUDA graph, where all events share one"),
				opt("launch_id", Int64, "", "event_index of the launching call"),
				opt("launch_api", String, "", "name of the launching call"),
				opt("pid", Int64, "", "process of the launching call"),
				colGlobalPID,
			},
			colsIteration,
			[]Column{opt("unresolved_reason", String, "", "why there is no iteration")},
		),
	}

	TableDiagnostics = Table{
		Name: "diagnostics", Row: "something noticed while importing", Order: "code, then byte offset",
		Doc: "What was repaired, guessed, clipped, set aside or not linked, with a count and the first places.",
		Columns: cols([]Column{
			req("code", String, "", "what was noticed; docs/diagnostics.md explains each code"),
			req("severity", String, "", "info, notice, repair, data_loss or error"),
			opt("byte_offset", Int64, "bytes", "offset in the decompressed text of this occurrence; null for a total"),
			opt("event_index", Int64, "", "event of this occurrence, where it is one event"),
			req("count", Int64, "", "occurrences that the row stands for"),
			req("message", String, "", "what was found, in words"),
		}),
	}
)

// TraceTables are the tables that a profiler trace fills.
var TraceTables = []*Table{
	&TableTraces, &TableDevices, &TableGPUEvents, &TableLaunches, &TableRanges, &TableCPUEvents,
	&TableInstants, &TableCounters, &TableFlows, &TableMetadata, &TableActivities, &TableDiagnostics,
}

// Tables lists every table in the order of the data dictionary.
var Tables = append(append([]*Table(nil), TraceTables...), CollectedTables...)

// TableByName returns the declaration of a table, or nil.
func TableByName(name string) *Table {
	for _, t := range Tables {
		if t.Name == name {
			return t
		}
	}
	return nil
}
