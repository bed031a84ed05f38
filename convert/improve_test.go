package convert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"tracelake/analyze/activity"
	"tracelake/analyze/link"
	"tracelake/kineto/compat"
)

// improvements are the cases whose records differ from the reference's without
// the compatibility mode, and why. All others have the same records.
var improvements = map[string]string{
	// Text that strict readers refuse is read where it can be, with diagnostics; so are files that end early.
	"bad_escape":             "accepted",
	"comment":                "accepted",
	"gzip_bad_crc":           "accepted",
	"gzip_bad_length":        "accepted",
	"gzip_of_bad_utf8":       "accepted",
	"gzip_trailing_garbage":  "accepted",
	"gzip_truncated_trailer": "accepted",
	"invalid_utf8":           "accepted",
	"leading_zero_number":    "accepted",
	"plus_number":            "accepted",
	"raw_control_char":       "accepted",
	"raw_newline_in_string":  "accepted",
	"top_is_list":            "accepted",
	"trailing_comma":         "accepted",
	"trailing_garbage":       "accepted",
	"truncated_json":         "accepted",
	"utf16":                  "accepted",
	"utf8_bom":               "accepted",
	// One odd value never refuses a whole trace: it is kept in args_json or header_json, and counted.
	"args_list":                 "accepted",
	"args_string":               "accepted",
	"base_list":                 "accepted",
	"base_text":                 "accepted",
	"device_props_bad_id":       "accepted",
	"device_props_int":          "accepted",
	"distributed_list":          "accepted",
	"distributed_rank_negative": "accepted",
	"distributed_world_zero":    "accepted",
	"event_cat_list":            "accepted",
	"gpu_correlation_negative":  "accepted",
	"gpu_device_infinity":       "accepted",
	"gpu_dur_list":              "accepted",
	"gpu_dur_negative":          "accepted",
	"gpu_missing_ts":            "accepted",
	"gpu_stream_negative":       "accepted",
	"gpu_ts_1e999":              "accepted",
	"gpu_ts_huge_int_literal":   "accepted",
	"gpu_ts_inf":                "accepted",
	"gpu_ts_nan":                "accepted",
	"gpu_ts_null":               "accepted",
	"gpu_ts_overflow_us_to_ns":  "accepted",
	"gpu_ts_text":               "accepted",
	"graph_id_negative":         "accepted",
	"group_negative_dur_hidden": "accepted",
	"host_number":               "accepted",
	"launch_correlation_list":   "accepted",
	"launch_correlation_text":   "accepted",
	"launch_missing_pid":        "accepted",
	"launch_missing_tid":        "accepted",
	"launch_missing_ts":         "accepted",
	"launch_negative_dur":       "accepted",
	"launch_text_pid":           "accepted",
	"range_bad_dur_our_name":    "accepted",
	"range_trace_pid_text":      "accepted",
	"vllm_version_number":       "accepted",
	// Times are exact decimals; the reference adds and rounds floats.
	"gpu_start_plus_dur_in_float": "end_ns metadata.busy_ns metadata.intervals metadata.summed_duration_ns",
	"times_rounding":              "end_ns metadata.summed_duration_ns",
	// A missing, empty or boolean duration is no duration; the event is kept and left out of times.
	"gpu_missing_dur":     "end_ns metadata.excluded_events start_ns",
	"times_as_ints_bools": "end_ns metadata.excluded_events start_ns",
	"times_as_strings":    "end_ns metadata.excluded_events metadata.intervals",
	// IDs are whole numbers: a fraction, a boolean or digits with underscores are none.
	"gpu_correlation_float":    "attribution_status context.pid cuda_correlation_id iteration_ref metadata.launch_api metadata.unresolved_reason",
	"gpu_device_forms":         "metadata.device_index",
	"gpu_stream_forms":         "stream_id",
	"graph_id_forms":           "graph_id",
	"launch_correlation_bool":  "attribution_status context.pid iteration_ref metadata.launch_api metadata.unresolved_reason",
	"launch_correlation_float": "attribution_status context.pid iteration_ref metadata.launch_api metadata.unresolved_reason",
	"launch_float_pid":         "attribution_status context.pid iteration_ref metadata.unresolved_reason",
	// An ID beyond 64 bits is kept as text and links nothing.
	"gpu_correlation_big": "attribution_status context.pid cuda_correlation_id iteration_ref metadata.launch_api metadata.unresolved_reason",
	// A missing name is empty and not the word None.
	"gpu_name_null_number": "metadata.first_name",
	"launch_name_variants": "metadata.launch_api",
	// Other vendors' launch categories link, too.
	"hip_and_privateuse_categories_ignored": "records 2 and 3",
	// Two processes with one correlation ID are not guessed at.
	"two_pids_share_correlation": "attribution_status context.pid iteration_ref metadata.launch_api metadata.unresolved_reason",
	// A trace ID of 0 is a trace ID.
	"trace_id_zero": "activity_ref.id context.clock_domain event_id",
}

// recordsOf returns the records of a trace as decoded JSON.
func recordsOf(t *testing.T, path string, reference bool) ([]map[string]any, error) {
	t.Helper()
	tr, err := compat.Load(path)
	if !reference {
		tr, _, err = Load(context.Background(), path, link.Marks{})
	}
	if err != nil {
		return nil, err
	}
	r, err := activity.Capture(tr, path, activity.Options{RunID: "run-1", SessionID: "session-1", Compat: reference})
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := r.WriteJSONLines(&b); err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(&b)
	d.UseNumber()
	var out []map[string]any
	for d.More() {
		var m map[string]any
		if err := d.Decode(&m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	return out, nil
}

// difference describes how two lists of records differ: the fields.
func difference(a, b []map[string]any) string {
	if len(a) != len(b) {
		return fmt.Sprintf("records %d and %d", len(a), len(b))
	}
	fields := map[string]bool{}
	for i := range a {
		compareFields("", a[i], b[i], fields)
	}
	var out []string
	for f := range fields {
		out = append(out, f)
	}
	sort.Strings(out)
	return strings.Join(out, " ")
}

func compareFields(at string, a, b any, out map[string]bool) {
	x, ok1 := a.(map[string]any)
	y, ok2 := b.(map[string]any)
	if ok1 && ok2 {
		for k := range x {
			compareFields(at+"."+k, x[k], y[k], out)
		}
		for k := range y {
			if _, ok := x[k]; !ok {
				out[strings.TrimPrefix(at+"."+k, ".")] = true
			}
		}
		return
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		out[strings.TrimPrefix(at, ".")] = true
	}
}

func TestDifferencesAreImprovements(t *testing.T) {
	files, err := filepath.Glob("../testdata/stormlog/*.json*")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, f := range files {
		if strings.HasSuffix(f, ".jsonl") {
			continue
		}
		name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".gz"), ".json")
		want, rerr := recordsOf(t, f, true)
		got, err := recordsOf(t, f, false)
		diff := ""
		switch {
		case rerr != nil && err != nil:
		case rerr != nil:
			diff = "accepted"
		case err != nil:
			diff = "refused: " + err.Error()
		default:
			diff = difference(want, got)
		}
		checked++
		if diff != improvements[name] {
			t.Errorf("%q: %q, // pinned %q", name, diff, improvements[name])
		}
	}
	if checked < 150 {
		t.Fatalf("only %d cases", checked)
	}
}
