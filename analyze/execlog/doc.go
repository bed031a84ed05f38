// Package execlog reads the execution log that a hook inside vLLM writes, and
// tells from it on which GPUs the processes of a trace ran.
//
// The log has a directory per process lifetime, an epoch:
// <host>-<boot>/<role>-<pid>-<start ns>/ with segments of JSON lines. The hello
// of a worker names its host, CUDA ordinal and GPU; heartbeats and the goodbye
// tell how long it lived. A worker that was alive on the host of a trace, under
// a process ID of the trace, across the time that the trace covers, is the
// process that wrote it.
package execlog

const (
	format = "stormlog.vllm_hook/1"
	// slack is how long after its last sign a worker without a goodbye still
	// counts as alive.
	slack = 30_000_000_000 // ns
	// maxLine bounds a line of a segment, in bytes.
	maxLine = 64 << 20
	// maxNotes bounds what is kept of what was wrong with the log.
	maxNotes = 16
)
