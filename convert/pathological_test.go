package convert

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

// pathological pins what becomes of each broken or odd trace of the shared
// folder: outcome, members of the event array, GPU events, those with a launch,
// and what was noticed.
var pathological = map[string]string{
	"Infinity_NaN_tokens.json":      "ok 92 5 5 odd_value:2",
	"args_null_or_string.json":      "ok 92 5 0 no_correlation:5",
	"bad_u_escape.json":             "repaired 92 5 5 invalid_escape:1",
	"crlf.json":                     "ok 92 5 5",
	"ctrl_char_in_name.json":        "repaired 92 5 5 control_character:1",
	"deep_nesting.json":             "rejected: nested deeper",
	"double_gzip.json.gz":           "ok 92 5 5 nested_gzip:1",
	"dup_events.json":               "ok 184 10 10 duplicate_launch:12",
	"dup_key_args.json":             "ok 92 5 5",
	"dup_traceEvents.json":          "ok 92 5 5 duplicate_trace_events:1",
	"empty.json":                    "rejected: empty",
	"empty_gz.json.gz":              "rejected: empty",
	"empty_traceEvents.json":        "ok 0 0 0 no_duration_events:1",
	"events_before_meta.json":       "ok 92 5 5",
	"gzip_bad_crc.json.gz":          "partial 92 5 5 gzip_checksum:1",
	"gzip_multimember.json.gz":      "ok 92 5 5",
	"gzip_named_json.json":          "ok 92 5 5",
	"gzip_trailing_garbage.json.gz": "ok 92 5 5",
	"html_saved.json":               "rejected: HTML",
	"huge_name.json.gz":             "ok 93 6 5 no_correlation:1",
	"inf_bandwidth.json":            "repaired 92 5 5 bare_word:1",
	"inf_quoted.json":               "ok 92 5 5 odd_value:1",
	"int_over_2_53.json":            "ok 93 6 5 odd_value:1 no_correlation:1", // a correlation ID beyond int64 is kept as text
	"invalid_utf8.json":             "repaired 92 5 5 invalid_utf8:1",
	"latin1.json":                   "repaired 92 5 5 invalid_utf8:1",
	"lfs_pointer.json":              "rejected: Git LFS",
	"lone_surrogate.json":           "repaired 92 5 5 invalid_utf8:1",
	"missing_dur.json":              "ok 92 5 5 missing_duration:1",
	"missing_traceEvents.json":      "rejected: without a traceEvents",
	"nan_bare.json":                 "repaired 92 5 5 bare_word:1",
	"ndjson_events.json":            "rejected: several JSON documents",
	"negative_dur.json":             "ok 92 5 5 negative_duration:11",
	"negative_tid.json":             "ok 92 5 5",
	"newline_tab_in_name.json":      "repaired 92 5 5 control_character:1",
	"non_object_events.json":        "ok 97 5 5 non_object_event:5",
	"not_a_trace.json":              "rejected: without a traceEvents",
	"nul_in_name.json":              "repaired 92 5 5 control_character:1",
	"null_traceEvents.json":         "rejected: without a traceEvents",
	"ok_base.json":                  "ok 92 5 5",
	"ok_base.json.gz":               "ok 92 5 5",
	"overlap_same_stream.json":      "ok 93 6 5 overruns_next:1 no_launch_record:1",
	"pid_tid_types.json":            "ok 92 5 5",
	"plain_named_gz.json.gz":        "ok 92 5 5",
	"top_level_array.json":          "ok 92 5 5",
	"trailing_comma_args.json":      "repaired 92 5 5 trailing_comma:1",
	"trailing_comma_array.json":     "repaired 92 5 5 trailing_comma:1 broken_header_value:1", // one stands in deviceProperties
	"trailing_empty_object.json":    "ok 93 5 5 empty_event:1",
	"truncated_gzip.json.gz":        "partial 26 4 4 text_cut:1 gzip_cut:1",
	"truncated_mid_event.json":      "partial 49 5 5 text_cut:1",
	"truncated_mid_string.json":     "partial 13 1 0 text_cut:1 no_launch_record:1",
	"ts_float_20digits.json":        "ok 92 5 5",
	"ts_huge.json":                  "ok 92 5 5 bad_time:3 odd_value:3",
	"ts_scientific.json":            "ok 92 5 5",
	"ts_strings.json":               "ok 92 5 5",
	"ts_unpadded_ns.json":           "ok 92 5 5 unpadded_nanoseconds:1",
	"ts_zero_mixed.json":            "ok 92 5 5 zero_time:4",
	"two_docs.json":                 "rejected: second JSON document",
	"unescaped_quotes_in_name.json": "repaired 92 5 5 unescaped_quote:1",
	"unterminated_array.json":       "repaired 92 5 5 unclosed_array:1",
	"utf16le.json":                  "repaired 92 5 5 utf16:1",
	"utf8_bom.json":                 "repaired 92 5 5 byte_order_mark:1",
	"whitespace.json":               "rejected: empty",
	"windows_path_escapes.json":     "repaired 92 5 5 invalid_escape:1",
	"windows_traceName.json":        "repaired 92 5 5 broken_header_value:1",
}

func sharedTraces(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRACELAKE_SHARED")
	if dir == "" {
		dir = "../../shared"
	}
	dir = filepath.Join(dir, "traces")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("SKIPPED: no shared traces; set TRACELAKE_SHARED to run this test")
	}
	return dir
}

func TestPathological(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(sharedTraces(t), "pathological", "*.json*"))
	if err != nil || len(files) < len(pathological) {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) {
			want, ok := pathological[name]
			if !ok {
				t.Fatal("no outcome is pinned")
			}
			x, err := Inspect(context.Background(), f, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if reason, ok := strings.CutPrefix(want, "rejected: "); ok {
				if x.Outcome != "rejected" || !strings.Contains(x.Reason, reason) || strings.Contains(x.Reason, "\n") {
					t.Fatalf("%s (%s), want %s", x.Outcome, x.Reason, want)
				}
				return
			}
			got := fmt.Sprintf("%s %d %d %d", x.Outcome, x.Events, x.GPUEvents, x.Linked)
			counts := map[string]int64{}
			for _, d := range x.Diags {
				counts[d.Code] += d.Count
			}
			delete(counts, "iteration_marks")
			var codes []string
			for c, n := range counts {
				codes = append(codes, fmt.Sprintf("%s:%d", c, n))
			}
			sort.Strings(codes)
			fields := strings.Fields(want)
			sort.Strings(fields[4:])
			got = strings.Join(append([]string{got}, codes...), " ")
			if want = strings.Join(fields, " "); got != want {
				t.Fatalf("%s, want %s", got, want)
			}
		})
	}
}
