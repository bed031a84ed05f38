package schema

import (
	"regexp"
	"strings"
)

// The tables of this file hold what tracers other than profilers found out
// about a model: its operators, graphs and generated kernels. Each row names
// the job that it comes from, so that tables of several tracers, and the
// profiles of the same model, can be joined.

var colsJob = []Column{
	opt("model", String, "", "model as it was asked for, such as org/name; the path for a local model; null where nothing tells it"),
	opt("revision", String, "", "revision of the model; null for a local one"),
	opt("framework", String, "", "huggingface or vllm"),
	opt("mode", String, "", "eval or train"),
	opt("tracer", String, "", "tracer that wrote the row"),
	opt("tracer_version", String, "", "version of the tracer"),
}

const sourceOrder = "as the tracer wrote them"

// collected declares a table that a tracer writes: trace_id and the job first,
// then the columns that tracers write, in their order.
func collected(name, row, doc string, columns ...Column) Table {
	return Table{Name: name, Row: row, Order: sourceOrder, Doc: doc, Columns: cols(colsJob, columns)}
}

// CollectedKeys is how many columns of a collected table come from the job and
// not from the tracer.
var CollectedKeys = 1 + len(colsJob)

var colGraph = opt("graph_id", String, "", "graph within the job: dynamo/0, aot_forward/0, aot_backward/0, aot_inference/0, export/0, inductor/0, …")

// Tables that tracers write.
var (
	TableOps = collected(
		"ops", "an operator call", "Operators that a step dispatched, with their inputs and outputs.",
		opt("op_index", Int64, "", "position of the call, from 0"),
		opt("step", Int64, "", "step of the workload"),
		opt("phase", String, "", "forward, backward, optimizer, prefill or decode; null where it is not known"),
		opt("name", String, "", "operator, such as aten::mm"),
		opt("overload", String, "", "overload of the operator"),
		opt("inputs_json", String, "", "inputs: a JSON list of {shape, dtype, stride, device} or scalars"),
		opt("outputs_json", String, "", "outputs, in the form of inputs_json"),
		opt("kwargs_json", String, "", "keyword arguments, as a JSON object"),
		opt("input_bytes", Int64, "bytes", "size of all input tensors"),
		opt("output_bytes", Int64, "bytes", "size of all output tensors"),
		opt("flops", Int64, "FLOP", "floating-point operations by formula; null where there is none"),
		opt("module", String, "", "path of the module that made the call"),
		opt("stack", String, "", "Python frames, innermost last"),
		opt("sequence_nr", Int64, "", "sequence number: joins forward and backward"),
		opt("record_id", Int64, "", "rf_id of an execution trace; joins to cpu_events.record_function_id"),
		opt("external_id", Int64, "", "External id of the profile"),
		opt("parent_index", Int64, "", "op_index of the enclosing call"),
		opt("dur_ns", Int64, "ns", "duration; null where it was not measured"),
	)

	TableGraphNodes = collected(
		"graph_nodes", "a node of an FX graph", "Nodes of every graph that a compiler stage saw. from_graph_id and from_node lead from a later stage back to an earlier one.",
		colGraph,
		opt("graph_kind", String, "", "stage: dynamo, aot_forward, aot_backward, aot_inference, export, inductor"),
		opt("graph_index", Int64, "", "number of the graph within its stage"),
		opt("node_index", Int64, "", "position of the node within its graph"),
		opt("node", String, "", "name of the node"),
		opt("op", String, "", "placeholder, get_attr, call_function, call_method, call_module or output"),
		opt("target", String, "", "what the node calls"),
		opt("args_json", String, "", "arguments as JSON; nodes by name"),
		opt("kwargs_json", String, "", "keyword arguments as JSON"),
		opt("users_json", String, "", "names of the nodes that use the result, as a JSON list"),
		opt("shape_json", String, "", "shape of the result, or a list of shapes, as JSON"),
		opt("dtype", String, "", "element type of the result"),
		opt("stride_json", String, "", "strides of the result in elements, as JSON"),
		opt("device", String, "", "device of the result"),
		opt("module", String, "", "path of the module that the node comes from"),
		opt("original_aten", String, "", "operator that the node was decomposed from"),
		opt("sequence_nr", Int64, "", "sequence number: joins forward and backward"),
		opt("partitioner_tag", String, "", "is_forward, is_backward, …"),
		opt("from_graph_id", String, "", "graph that the node was made from"),
		opt("from_node", String, "", "node of from_graph_id that the node was made from"),
		opt("stack", String, "", "Python frames, innermost last"),
	)

	TableGraphBreaks = collected(
		"graph_breaks", "a graph break", "Places at which Dynamo ended a graph, and why.",
		opt("break_index", Int64, "", "position of the break, from 0"),
		opt("reason", String, "", "why the graph ended"),
		opt("file", String, "", "source file"),
		opt("line", Int64, "", "line in file"),
		opt("function", String, "", "function"),
		opt("user_stack", String, "", "Python frames of the user's code"),
		opt("graph_before", String, "", "graph_id of the graph that ended"),
	)

	TableGuards = collected(
		"guards", "a guard", "Conditions under which a compiled graph may be used again.",
		opt("guard_index", Int64, "", "position of the guard, from 0"),
		colGraph,
		opt("guard_type", String, "", "kind of check: TENSOR_MATCH, ID_MATCH, …"),
		opt("source", String, "", "expression that is checked"),
		opt("code", String, "", "the check as Python code"),
		opt("stack", String, "", "Python frames that caused the guard"),
	)

	TableFusions = collected(
		"fusions", "an FX node within a generated kernel", "Which FX nodes went into which kernel: one row per kernel and node.",
		colGraph,
		opt("kernel", String, "", "kernel; joins to kernels_generated.kernel and to the names of GPU and CPU events"),
		opt("node", String, "", "FX node of the graph"),
		opt("original_aten", String, "", "operator that the node was decomposed from"),
		opt("node_order", Int64, "", "position of the node within the kernel"),
		opt("scheduler_node", String, "", "node of the scheduler that was fused"),
		opt("reads_json", String, "", "buffers read, as a JSON list"),
		opt("writes_json", String, "", "buffers written, as a JSON list"),
	)

	TableKernelsGenerated = collected(
		"kernels_generated", "a generated or external kernel", "Kernels that a compiler made or called for a graph.",
		colGraph,
		opt("kernel", String, "", "name of the kernel, as profiles show it"),
		opt("backend", String, "", "triton, cpp or extern"),
		opt("source_path", String, "", "file of the source, within the job's output"),
		opt("source_digest", String, "", "SHA-256 of the source"),
		opt("original_aten_json", String, "", "operators that went into the kernel, as a JSON list"),
		opt("nodes_json", String, "", "FX nodes that went into the kernel, as a JSON list"),
		opt("num_warps", Int64, "warps", "warps per block"),
		opt("num_stages", Int64, "", "pipeline stages"),
		opt("shared_bytes", Int64, "bytes", "shared memory per block"),
		opt("config_json", String, "", "launch and tuning configuration, as a JSON object"),
		opt("line", Int64, "", "line in source_path"),
	)
)

// CollectedTables are the tables that tracers write, in the order of the data
// dictionary.
var CollectedTables = []*Table{
	&TableOps, &TableGraphNodes, &TableGraphBreaks, &TableGuards, &TableFusions, &TableKernelsGenerated,
}

// CollectedByName returns the declaration of a table that tracers write, or
// nil.
func CollectedByName(name string) *Table {
	for _, t := range CollectedTables {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// UserPrefix starts the names of tables that a user's own tracer declares.
const UserPrefix = "x_"

var (
	userTable  = regexp.MustCompile(`^x_[a-z0-9][a-z0-9_]{0,62}$`)
	userColumn = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
)

// IsUserTable reports whether a name is that of a table of a user's tracer.
func IsUserTable(name string) bool { return userTable.MatchString(name) }

// UserTable declares a table of a user's tracer. The problem is "" where name
// and columns can be used.
func UserTable(name string, columns []Column) (t Table, problem string) {
	name = UserPrefix + strings.TrimPrefix(name, UserPrefix)
	if !IsUserTable(name) {
		return t, "the name of a table has up to 63 small letters, digits and underscores"
	}
	t = collected(name, "declared by the tracer", "A table of a tracer that is no part of tracelake.", columns...)
	seen := map[string]bool{"run": true, "rank": true}
	for i := range t.Columns {
		c := &t.Columns[i]
		lower := strings.ToLower(c.Name)
		switch {
		case !userColumn.MatchString(c.Name):
			return t, "column " + quoted(c.Name) + ": a name has up to 100 letters, digits and underscores"
		case seen[lower]:
			return t, "column " + quoted(c.Name) + ": the name is taken (trace_id, model, revision, framework, mode, tracer, tracer_version, run and rank always are)"
		}
		seen[lower] = true
	}
	return t, ""
}

func quoted(s string) string {
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return `"` + s + `"`
}
