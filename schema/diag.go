package schema

import "sort"

// Severity says what a diagnostic does to the outcome of an input.
type Severity uint8

// Severities, mildest first.
const (
	Info     Severity = iota // worth knowing, nothing is wrong
	Notice                   // unusual input that was read as it stands
	Repair                   // the text was mended; nothing is missing: outcome repaired
	DataLoss                 // something is missing or was set aside: outcome partial
	Error                    // the input was not imported: outcome rejected
)

// String returns the name used in tables.
func (s Severity) String() string {
	switch s {
	case Info:
		return "info"
	case Notice:
		return "notice"
	case Repair:
		return "repair"
	case DataLoss:
		return "data_loss"
	case Error:
		return "error"
	}
	return "invalid"
}

// Code names a diagnostic.
type Code string

// CodeInfo documents a code.
type CodeInfo struct {
	Code     Code
	Severity Severity
	Doc      string // what it means
	Do       string // what the user can do
}

// Diagnostic codes.
const (
	UnescapedQuote   Code = "unescaped_quote"
	ControlCharacter Code = "control_character"
	InvalidEscape    Code = "invalid_escape"
	InvalidUTF8      Code = "invalid_utf8"
	BareWord         Code = "bare_word"
	TrailingComma    Code = "trailing_comma"
	MissingComma     Code = "missing_comma"
	ByteOrderMark    Code = "byte_order_mark"
	UTF16            Code = "utf16"
	BrokenHeader     Code = "broken_header_value"
	UnclosedArray    Code = "unclosed_array"
	TrailingBytes    Code = "trailing_bytes"

	BrokenEvent   Code = "broken_event"
	TextCut       Code = "text_cut"
	GzipCut       Code = "gzip_cut"
	GzipChecksum  Code = "gzip_checksum"
	StreamCorrupt Code = "stream_corrupt"

	EmptyEvent      Code = "empty_event"
	NonObjectEvent  Code = "non_object_event"
	NoPhase         Code = "no_phase"
	NestedGzip      Code = "nested_gzip"
	BadTime         Code = "bad_time"
	NegativeDur     Code = "negative_duration"
	MissingDur      Code = "missing_duration"
	ZeroTime        Code = "zero_time"
	OverrunsNext    Code = "overruns_next"
	UnpaddedNS      Code = "unpadded_nanoseconds"
	OddArgument     Code = "odd_value"
	UnpairedBegin   Code = "unpaired_begin"
	UnpairedEnd     Code = "unpaired_end"
	DuplicateKey    Code = "duplicate_trace_events"
	DuplicateLaunch Code = "duplicate_launch"
	AmbiguousLaunch Code = "ambiguous_launch"
	NoCorrelation   Code = "no_correlation"
	NoLaunch        Code = "no_launch_record"
	ExternalIDLink  Code = "external_id_link"
	NoEvents        Code = "no_duration_events"
	NoIterations    Code = "no_iterations"
	IterationMarks  Code = "iteration_marks"
	RankConflict    Code = "rank_conflict"
	SeveralProcs    Code = "several_processes"
	SameRank        Code = "same_rank"
	MissingRanks    Code = "missing_ranks"
	NoBase          Code = "no_base_time"
	ExecutionLog    Code = "execution_log"

	TableUnread  Code = "table_unread"
	TableRow     Code = "table_row"
	TableValue   Code = "table_value"
	TableCut     Code = "table_cut"
	TableColumns Code = "table_columns"

	SameContent Code = "same_content"

	GraphRows     Code = "graph_trace_rows"
	TableVariant  Code = "table_variant"
	UnreadTable   Code = "unread_table"
	UnknownString Code = "unknown_string"
	UnnamedGPU    Code = "unnamed_gpu"
	ProfilerSays  Code = "profiler_diagnostic"
	NoGPUTables   Code = "no_gpu_tables"
	NoGPUWork     Code = "no_gpu_work"
	OpenRange     Code = "open_range"

	NotATrace Code = "not_a_trace"
)

// Codes documents every code, in the order of docs/diagnostics.md.
var Codes = []CodeInfo{
	{UnescapedQuote, Repair, "A string holds double quotes that are not escaped; its end was found by the key or bracket that follows.", "Update PyTorch, or ignore: the text is kept exactly."},
	{ControlCharacter, Repair, "A string holds control characters that JSON wants escaped; they are kept.", "Nothing."},
	{InvalidEscape, Repair, "A string holds a backslash sequence that JSON does not know (a Windows path); the whole string is taken literally.", "Nothing."},
	{InvalidUTF8, Repair, "A string holds bytes that are not UTF-8; each is replaced by U+FFFD.", "Find out which encoding the writer used if the names matter."},
	{BareWord, Repair, "A value is a bare word such as nan, inf or N/A; the typed column is null and the word is in args_json.", "Nothing."},
	{TrailingComma, Repair, "A comma stands before a closing bracket.", "Nothing."},
	{MissingComma, Repair, "No comma stands between two events.", "Nothing."},
	{ByteOrderMark, Repair, "The text starts with a UTF-8 byte order mark.", "Nothing."},
	{UTF16, Repair, "The text is UTF-16 and was converted.", "Write the file without a shell redirect that re-encodes it."},
	{BrokenHeader, Repair, "A value of the header could not be read as JSON; it is left out or taken literally.", "Check the key that the message names."},
	{UnclosedArray, Repair, "A trace in array form lacks its closing bracket, as the format allows.", "Nothing, if the writer ended normally."},
	{TrailingBytes, Repair, "Bytes behind the end of the trace or of the compressed stream were ignored.", "Check how the file was made."},
	{BrokenEvent, DataLoss, "An event could not be read and was set aside; reading went on at the next one.", "Look at the file at the byte offset."},
	{TextCut, DataLoss, "The text ends inside the trace; every complete event before is kept.", "Trace again: the writer died or the copy is incomplete."},
	{GzipCut, DataLoss, "The compressed stream ends early; what could be decompressed is kept.", "Copy the file again."},
	{GzipChecksum, DataLoss, "The checksum of the compressed stream does not match; events may be damaged.", "Copy the file again."},
	{StreamCorrupt, DataLoss, "The compressed stream is damaged; what stands before the damage is kept.", "Copy the file again."},
	{EmptyEvent, Notice, "The event array holds empty objects.", "Nothing."},
	{NonObjectEvent, Notice, "The event array holds members that are not objects.", "Nothing, unless the number is large."},
	{NoPhase, Notice, "Events have no phase (ph); they are in instants.", "Nothing."},
	{NestedGzip, Notice, "The file was compressed more than once.", "Nothing."},
	{BadTime, Notice, "Events have a time that is missing, no number, or out of range; start_ns is null, the text is in args_json.", "Nothing; they are left out of times."},
	{NegativeDur, Notice, "Events have a negative duration; it is kept and left out of busy times.", "Nothing; a profiler defect."},
	{MissingDur, Notice, "Duration events have no duration.", "Nothing."},
	{ZeroTime, Notice, "Events stand at time 0 far before all others: their time was lost; they are left out of busy times.", "Nothing; a profiler defect."},
	{OverrunsNext, Notice, "GPU events end after later events of the same stream have ended; they count as recorded, and clipped_dur_ns holds the time up to the next start.", "Compare both figures before you trust the durations."},
	{UnpaddedNS, Notice, "Times have fractions of fewer than three digits. They are read as decimals; nightly builds of March 2024 wrote nanoseconds without leading zeros.", "Check the PyTorch version if sub-microsecond times matter."},
	{OddArgument, Info, "An argument has a type that its column cannot hold; it is in args_json.", "Nothing."},
	{UnpairedBegin, Notice, "Begin events have no end event; they are kept without a duration.", "Nothing."},
	{UnpairedEnd, Notice, "End events have no begin event; they are kept without a duration.", "Nothing."},
	{DuplicateKey, Notice, "The trace has more than one traceEvents; the last one counts.", "Check how the file was made."},
	{DuplicateLaunch, Notice, "Several calls of one process have the same correlation ID; the last one takes the links.", "Nothing, unless traces were merged."},
	{AmbiguousLaunch, Notice, "Calls of several processes have the same correlation ID; GPU events with that ID are not linked.", "Convert the files of the ranks one by one and not merged."},
	{NoCorrelation, Notice, "GPU events have no correlation ID, or 0, and are not linked.", "Nothing; on ROCm communication kernels lack it."},
	{NoLaunch, Notice, "GPU events have a correlation ID that no call has.", "Start the profiler before the work, or record runtime calls."},
	{ExternalIDLink, Notice, "GPU events without a correlation ID were linked by External id.", "Nothing."},
	{NoEvents, Notice, "The trace has no duration events.", "Check that the profiler ran."},
	{NoIterations, Notice, "No annotation marks an iteration.", "Call prof.step(), mark iterations, or give --range-pattern."},
	{IterationMarks, Info, "Which annotations mark iterations.", "Choose others with --range-pattern."},
	{RankConflict, Notice, "The file name states another rank than the content; the content counts.", "Check the trace handler of the job."},
	{SeveralProcs, Notice, "GPU work was launched by several processes; launches are told apart by process.", "Convert the files of the ranks one by one where they exist."},
	{SameRank, Notice, "Two files of the run state the same rank. The view diagnostics computes it from traces: one row per file.", "Give each job its own --run."},
	{MissingRanks, Notice, "The run has fewer ranks than its world size. The view diagnostics computes it from traces: one row per run, with the trace_id of its first trace.", "Convert the missing files."},
	{NoBase, Notice, "The trace has no base time and its times are not absolute: it cannot be aligned with others.", "Nothing."},
	{TableUnread, DataLoss, "A table file of a tracer was not read: it is missing, or its first line declares nothing that can be imported.", "Look at the first line of the file; for a tracer of your own, correct what it declares."},
	{TableRow, DataLoss, "A line of a table file is no JSON object, or longer than 64 MiB; it was set aside.", "Look at the line of the file."},
	{TableValue, DataLoss, "A value of a row has no declared column or another type; the rest of the row is kept.", "Correct the tracer: its columns and its rows must agree."},
	{TableCut, DataLoss, "A table file ends inside a row, or has fewer rows than its status file promises.", "Collect again: the tracer died or the copy is incomplete."},
	{TableColumns, Notice, "A table file lacks columns of its table; they are null.", "Use the tracers that belong to this version."},
	{ExecutionLog, Notice, "The execution log does not tell the GPU of every process of the trace: no worker, or several, were alive on the host under the process ID all the time.", "Give --device-uuid, or the log of the run that wrote the trace."},
	{SameContent, Notice, "Another file of the dataset has the same content; its rows are not repeated.", "Nothing; traces.duplicate_of names it."},
	{GraphRows, Notice, "CUDA graphs were traced as a whole: their rows count as GPU work of kind gpu_graph, and the kernels inside are not told apart.", "Record with --cuda-graph-trace=node to see the kernels."},
	{TableVariant, Notice, "A table of the export has another name than usual and was read.", "Nothing."},
	{UnreadTable, Info, "Tables of the export that have rows and are not imported.", "Nothing; docs/formats.md lists what is."},
	{UnknownString, Notice, "Rows refer to strings that the export does not hold; the names are null.", "Export the report again, without leaving out tables."},
	{UnnamedGPU, Notice, "The report does not name the GPU of a process's device.", "Export with nsys 2025.1 or later, or give --device-uuid."},
	{ProfilerSays, Notice, "The profiler reported a warning or an error while recording.", "Read the message: lost events mean lower busy times."},
	{NoGPUTables, Notice, "The report was recorded without CUDA tracing.", "Record with nsys profile --trace=cuda,nvtx."},
	{NoGPUWork, Notice, "The report has CUDA calls but no kernels, copies or memsets.", "Check that the traced window holds GPU work."},
	{OpenRange, Notice, "NVTX ranges were never closed; they are kept without an end and mark no iteration.", "Nothing; the window ended inside them."},
	{NotATrace, Error, "The input is not a trace that can be imported.", "See the message."},
}

// Describe returns the documentation of a code.
func Describe(c Code) (CodeInfo, bool) {
	for _, i := range Codes {
		if i.Code == c {
			return i, true
		}
	}
	return CodeInfo{}, false
}

// Diagnostic is one occurrence, or a total of many.
type Diagnostic struct {
	Code       Code
	Severity   Severity
	Offset     int64 // byte offset in the decompressed text; Null where there is none
	EventIndex int64 // Null where it is not one event
	Count      int64
	Message    string
}

// MaxPlaces is how many places of one code are kept one by one.
const MaxPlaces = 16

// Diagnostics collects what was noticed about one input: the first MaxPlaces
// occurrences of each code one by one, the rest as a total.
type Diagnostics struct {
	list  map[Code][]Diagnostic
	total map[Code]int64
}

// Add notes n occurrences of a code. Offset and event may be Null.
func (d *Diagnostics) Add(code Code, offset, event, n int64, message string) {
	if n <= 0 {
		return
	}
	if d.list == nil {
		d.list, d.total = map[Code][]Diagnostic{}, map[Code]int64{}
	}
	info, _ := Describe(code)
	d.total[code] += n
	l := d.list[code]
	switch {
	case len(l) < MaxPlaces:
		d.list[code] = append(l, Diagnostic{code, info.Severity, offset, event, n, message})
	case len(l) == MaxPlaces:
		d.list[code] = append(l, Diagnostic{code, info.Severity, Null, Null, n, "further occurrences"})
	default:
		l[MaxPlaces].Count += n
	}
}

// Count returns how often a code occurred.
func (d *Diagnostics) Count(code Code) int64 { return d.total[code] }

// CountSeverity returns how many occurrences of one severity there were.
func (d *Diagnostics) CountSeverity(s Severity) (n int64) {
	for c, k := range d.total {
		if info, _ := Describe(c); info.Severity == s {
			n += k
		}
	}
	return n
}

// Outcome returns ok, repaired, partial or rejected, and the first cause.
func (d *Diagnostics) Outcome() (outcome, reason string) {
	worst := Info
	for _, x := range d.List() {
		if x.Severity > worst && x.Severity >= Repair {
			worst, reason = x.Severity, string(x.Code)+": "+x.Message
		}
	}
	switch worst {
	case Repair:
		return "repaired", reason
	case DataLoss:
		return "partial", reason
	case Error:
		return "rejected", reason
	}
	return "ok", ""
}

// List returns the diagnostics in the order of Codes, places before totals.
func (d *Diagnostics) List() []Diagnostic {
	var out []Diagnostic
	for _, info := range Codes {
		l := append([]Diagnostic(nil), d.list[info.Code]...)
		sort.SliceStable(l, func(i, j int) bool {
			return l[i].Offset != Null && l[j].Offset != Null && l[i].Offset < l[j].Offset
		})
		out = append(out, l...)
	}
	return out
}

// AddMore counts further occurrences of a code whose first MaxPlaces places
// were added one by one.
func (d *Diagnostics) AddMore(code Code, n int64) { d.Add(code, Null, Null, n, "further occurrences") }
