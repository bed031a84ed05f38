package reportcopy

import "tracelake/redact"

// kind is what a column holds.
type kind uint8

const (
	number   kind = iota // an integer
	real                 // a floating-point number
	global               // the global ID of a process or thread
	pid                  // a process ID
	text                 // a text
	stringID             // the ID of a text in StringIds
)

// column is a column that is copied.
type column struct {
	name  string
	kind  kind
	class redact.Class // of a text; 0 where the key of the row decides
}

// table is a table that is copied.
type table struct {
	name    string
	columns []column
	// keys are the rows that are copied of a table of names and values, with the
	// class of each value.
	keys map[string]redact.Class
	// processes is set where rows are copied for processes only that other rows
	// belong to: a report lists all processes of the machine.
	processes bool
}

func numbers(names ...string) (out []column) {
	for _, n := range names {
		out = append(out, column{name: n})
	}
	return out
}

func globals(names ...string) (out []column) {
	for _, n := range names {
		out = append(out, column{name: n, kind: global})
	}
	return out
}

func join(parts ...[]column) (out []column) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func id(name string, c redact.Class) column    { return column{name, stringID, c} }
func texts(name string, c redact.Class) column { return column{name, text, c} }

var (
	work = join(numbers("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "graphNodeId", "graphId"), globals("globalPid"))
	call = join(numbers("start", "end", "correlationId", "eventClass", "returnValue", "overheadType"), globals("globalTid"))

	exportKeys = map[string]redact.Class{
		"EXPORT_PRODUCT_VERSION": redact.Version, "EXPORT_SCHEMA_VERSION": redact.Version, "EXPORT_SCHEMA_VERSION_MAJOR": redact.Version,
		"EXPORT_SCHEMA_VERSION_MINOR": redact.Version, "EXPORT_SCHEMA_VERSION_MICRO": redact.Version,
		"EXPORT_PARAM_TIME_NORMALIZE": redact.Words, "EXPORT_PARAM_TIME_SHIFT": redact.Words,
	}
	nameValue = []column{{name: "name", kind: text}, {name: "value", kind: text}} // decided by key
)

// tables are what is copied, and all that is: tables and columns that are not
// listed are left out.
var tables = []table{
	{name: "CUPTI_ACTIVITY_KIND_KERNEL", columns: join(work, numbers("registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
		"staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread", "localMemoryTotal", "sharedMemoryExecuted", "gridId", "launchType", "cacheConfig"),
		[]column{id("demangledName", redact.KernelName), id("shortName", redact.KernelName)})},
	{name: "CUPTI_ACTIVITY_KIND_MEMCPY", columns: join(work, numbers("bytes", "copyKind", "srcKind", "dstKind", "srcDeviceId", "srcContextId", "dstDeviceId", "dstContextId", "migrationCause", "copyCount"))},
	{name: "CUPTI_ACTIVITY_KIND_MEMSET", columns: join(work, numbers("value", "bytes", "memKind"))},
	{name: "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", columns: join(work, numbers("graphExecId"))},
	{name: "CUPTI_ACTIVITY_KIND_RUNTIME", columns: join(call, []column{id("nameId", redact.API)})},
	{name: "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", columns: join(work, numbers("syncType", "eventId", "eventSyncId"), []column{id("nameId", redact.Annotation)})},
	{name: "CUPTI_ACTIVITY_KIND_OVERHEAD", columns: join(call, []column{id("nameId", redact.Annotation)})},
	{name: "PROFILER_OVERHEAD", columns: join(call, []column{id("nameId", redact.Annotation)})},
	{name: "OSRT_API", columns: join(call, []column{id("nameId", redact.SystemCall)})},
	{name: "CUDNN_EVENTS", columns: join(call, []column{id("nameId", redact.API)})},
	{name: "CUBLAS_EVENTS", columns: join(call, []column{id("nameId", redact.API)})},
	{name: "NVTX_EVENTS", columns: join(numbers("start", "end", "eventType", "rangeId", "category", "color", "domainId", "uint64Value", "int64Value",
		"uint32Value", "int32Value"), []column{{name: "doubleValue", kind: real}, {name: "floatValue", kind: real}}, globals("globalTid", "endGlobalTid"),
		[]column{texts("text", redact.Annotation), id("textId", redact.Annotation), texts("jsonText", redact.Value), id("jsonTextId", redact.Value)})},
	{name: "CUDA_GPU_MEMORY_USAGE_EVENTS", columns: join(numbers("start", "deviceId", "contextId", "address", "bytes", "memKind", "memoryOperationType",
		"correlationId", "streamId"), globals("globalPid"), []column{texts("name", redact.Value)})},
	{name: "GPU_METRICS", columns: numbers("timestamp", "typeId", "metricId", "value")},
	{name: "TARGET_INFO_GPU_METRICS", columns: join(numbers("typeId", "metricId"), []column{texts("metricName", redact.Words)})},
	{name: "TARGET_INFO_GPU", columns: join(numbers("id", "totalMemory", "smCount", "computeMajor", "computeMinor", "threadsPerWarp"),
		[]column{texts("name", redact.Product), texts("uuid", redact.UUID)})},
	{name: "TARGET_INFO_CUDA_GPU", columns: join(numbers("deviceId", "globalMemorySize", "numMultiprocessors", "computeCapabilityMajor", "computeCapabilityMinor"),
		[]column{texts("name", redact.Product)})},
	{name: "TARGET_INFO_CUDA_DEVICE", columns: join(numbers("cudaId", "gpuId", "numMultiprocessors"), []column{{name: "pid", kind: pid}, texts("uuid", redact.UUID)})},
	{name: "TARGET_INFO_SESSION_START_TIME", columns: numbers("utcEpochNs")},
	{name: "DIAGNOSTIC_EVENT", columns: join(numbers("timestamp", "severity"), []column{texts("text", redact.Message)})},
	{name: "META_DATA_EXPORT", columns: nameValue, keys: exportKeys},
	{name: "EXPORT_META_DATA", columns: nameValue, keys: exportKeys},
	{name: "META_DATA_CAPTURE", columns: nameValue, keys: map[string]redact.Class{"DEVICE_DISPLAY_NAME": redact.Host, "CUDA_GRAPH_TRACE_OPTIONS:MODE": redact.Words}},
	{name: "PROCESSES", columns: join(globals("globalPid"), []column{{name: "pid", kind: pid}, texts("name", redact.Process)}), processes: true},
	{name: "ThreadNames", columns: join(globals("globalTid"), numbers("priority"), []column{id("nameId", redact.Thread)}), processes: true},
}
