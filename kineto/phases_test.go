package kineto

import (
	"strings"
	"testing"
)

// rowsOf reads a trace of the given events and returns the rows of a table.
func rowsOf(t *testing.T, table string, events ...string) []string {
	t.Helper()
	got := readAll(t, from([]byte(`{"traceEvents":[`+strings.Join(events, ",")+`]}`)), Options{Workers: 1})
	if got.err != "" {
		t.Fatal(got.err)
	}
	return got.rows[table]
}

func wantRows(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i, w := range want {
		for _, part := range strings.Fields(w) {
			if !strings.Contains(" "+got[i], " "+part+" ") {
				t.Errorf("row %d lacks %s: %s", i, part, got[i])
			}
		}
	}
}

// TestBeginEnd pairs begin and end events that stand in any order.
func TestBeginEnd(t *testing.T) {
	be := func(ph, name, ts, tid string) string {
		return `{"ph":"` + ph + `","name":"` + name + `","cat":"c","pid":1,"tid":` + tid + `,"ts":` + ts + `,"args":{"k":"` + ph + name + `"}}`
	}
	wantRows(t, rowsOf(t, "cpu_events",
		be("E", "inner", "30", "1"), be("B", "outer", "10", "1"), be("B", "inner", "20", "1"), be("E", "outer", "40", "1"),
		be("B", "other thread", "15", "2"), be("B", "open", "50", "1"), be("E", "stray", "5", "3"),
	),
		`event_index=1 name="outer" start_ns=10000 dur_ns=30000 end_ns=40000 pairing="paired" end_index=3 args_json="{\"k\":\"Bouter\",\"event.end_args\":{\"k\":\"Eouter\"}}"`,
		`event_index=2 name="inner" start_ns=20000 dur_ns=10000 end_index=0`,
		`event_index=4 pairing="no_end" time_flag="missing_duration"`,
		`event_index=5 name="open" start_ns=50000 pairing="no_end"`,
		`event_index=6 name="stray" pairing="no_begin"`,
	)
}

// TestEndSays: what only the end event says is that of the event, what it says
// otherwise is kept.
func TestEndSays(t *testing.T) {
	wantRows(t, rowsOf(t, "cpu_events",
		`{"ph":"B","name":"a","pid":1,"tid":1,"ts":1,"args":{"External id":4}}`,
		`{"ph":"E","cat":"cpu_op","pid":1,"tid":1,"ts":2,"args":{"External id":4,"Sequence number":7,"Input Dims":[[2]],"flops":12.0,"x":1}}`,
		`{"ph":"B","name":"b","cat":"cpu_op","pid":1,"tid":1,"ts":3,"args":{"External id":5,"y":0}}`,
		`{"ph":"E","name":"c","cat":"cpu_op","pid":1,"tid":1,"ts":4,"args":{"External id":6,"z":[]}}`,
		`{"ph":"B","name":"d","pid":1,"tid":1,"ts":5}`,
		`{"ph":"E","name":"e","pid":1,"tid":1,"ts":6}`,
	),
		`event_index=0 name="a" category="cpu_op" external_id=4 sequence_number=7 input_dims="[[2]]" flops=12 args_json="{\"x\":1}"`,
		`event_index=2 name="b" external_id=5 args_json="{\"y\":0,\"event.end_args\":{\"event.name\":\"c\",\"External id\":6,\"z\":[]}}"`,
		`event_index=4 name="d" args_json="{\"event.end_args\":{\"event.name\":\"e\"}}"`,
	)
}

func TestCounters(t *testing.T) {
	wantRows(t, rowsOf(t, "counters",
		`{"ph":"C","name":"q","id":7,"s":"p","bp":"e","dur":2,"more":[1],"pid":1,"ts":2,"args":{"a":null,"b":2}}`,
		`{"ph":"C","name":"q","id":"0x8","pid":1,"ts":3,"args":{"a":1}}`,
	),
		`event_index=0 series="a" id="7" args_json="{\"event.s\":\"p\",\"event.bp\":\"e\",\"event.more\":[1],\"event.dur\":2}"`,
		`event_index=0 series="b" id="7" value_int=2`,
		`event_index=1 series="a" id="0x8" value_int=1`,
	)
	if got := rowsOf(t, "counters", `{"ph":"C","name":"q","args":{"a":null}}`)[0]; strings.Contains(got, "value") {
		t.Errorf("a sample that is null: %s", got)
	}
	wantRows(t, rowsOf(t, "counters",
		`{"ph":"C","name":"mem","pid":"GPU 0 Counters","ts":1.5,"args":{"bytes":9007199254740993,"":0.25,"label":"x"}}`,
		`{"ph":"C","name":"none","pid":1,"ts":2}`,
	),
		`event_index=0 name="mem" series="bytes" start_ns=1500 value_int=9007199254740993`,
		`event_index=0 series="" value=0.25`,
		`event_index=0 series="label" value_text="x"`,
		`event_index=1 name="none" pid=1`,
	)
}

func TestOtherPhases(t *testing.T) {
	wantRows(t, rowsOf(t, "instants",
		`{"ph":"i","cat":"cpu_instant_event","name":"[memory]","s":"t","pid":1,"tid":1,"ts":1,"args":{"Bytes":-64,"Addr":18446744073709551615,"Device Type":1,"Device Id":0,"Total Allocated":5}}`,
		`{"ph":"b","cat":"async","name":"a","id":"0x1f","pid":1,"tid":1,"ts":2}`,
		`{"name":"no phase","pid":"CPU functions","ts":3,"dur":4}`,
	),
		`event_index=0 phase="i" scope="t" bytes=-64 addr=-1 device_type=1 device_id=0 total_allocated_bytes=5`,
		`event_index=1 phase="b" id="0x1f"`,
		`event_index=2 start_ns=3000 dur_ns=4000`,
	)
	wantRows(t, rowsOf(t, "flows",
		`{"ph":"s","cat":"ac2g","name":"ac2g","id":7,"pid":1,"tid":1,"ts":1}`,
		`{"ph":"f","cat":"ac2g","name":"ac2g","id":"x7","bp":"e","pid":0,"tid":"stream 7","ts":2}`,
	), `phase="s" id=7`, `phase="f" id_text="x7" bind_point="e" pid=0`)
	wantRows(t, rowsOf(t, "metadata",
		`{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}}`,
		`{"ph":"M","name":"thread_sort_index","pid":1,"tid":2,"args":{"sort_index":9}}`,
	), `name="process_name" value="python"`, `name="thread_sort_index" sort_index=9`)
}

// TestVendors checks the categories of other vendors and of 2021.
func TestVendors(t *testing.T) {
	x := func(cat string) string {
		return `{"ph":"X","cat":"` + cat + `","name":"n","pid":1,"tid":1,"ts":1,"dur":1}`
	}
	cats := []string{"cuda_runtime", "cuda_driver", "hip_runtime", "xpu_runtime", "xpu_driver", "mtia_runtime", "privateuse1_runtime", "privateuse1_driver", "glow_runtime", "Runtime"}
	var events []string
	for _, c := range cats {
		events = append(events, x(c))
	}
	if n := len(rowsOf(t, "launches", events...)); n != len(cats) {
		t.Errorf("%d launches of %d", n, len(cats))
	}
	if n := len(rowsOf(t, "gpu_events", x("Kernel"), x("Memcpy"), x("Memset"), x("kernel"), x("gpu_memcpy"), x("gpu_memset"))); n != 6 {
		t.Errorf("%d GPU events of 6", n)
	}
	if n := len(rowsOf(t, "cpu_events", x("cpu_op"), x("overhead"), x("cuda_sync"), x("python_function"), x("mtia_ccp_events"), x("KERNEL"))); n != 6 {
		t.Errorf("%d other events of 6", n)
	}
}

// TestMetadataWithTwoValues: a row has one value, the other stays an argument.
func TestMetadataWithTwoValues(t *testing.T) {
	for name, want := range map[string]string{
		"process_name":   `args_json="{\"labels\":\"y\"}"`,
		"process_labels": `args_json="{\"name\":\"x\"}"`,
	} {
		got := readAll(t, from([]byte(`[{"ph":"M","name":"`+name+`","pid":1,"args":{"name":"x","labels":"y"}}]`)), Options{})
		if rows := got.rows["metadata"]; len(rows) != 1 || strings.Count(rows[0], "value=") != 1 || !strings.Contains(rows[0], want) {
			t.Errorf("%s: %v, want %s", name, rows, want)
		}
	}
}

// TestOneSlotPerColumn: two slots for one column would put two values in a row.
func TestOneSlotPerColumn(t *testing.T) {
	for id := range specs {
		s := &specs[id]
		taken := map[int16]slot{}
		for x, c := range s.slotCol {
			if c < 0 || s.special.has(x) || tableID(id) == tabMetadata && x == slotArgLabels {
				continue
			}
			if other, ok := taken[c]; ok {
				t.Errorf("%s: %s and %s are for column %s", s.table.Name, slots[other].name, slots[x].name, s.table.Columns[c].Name)
			}
			taken[c] = x
		}
	}
}

// TestLastArrayCounts: of equal keys the last one counts, also when one between
// them is no array.
func TestLastArrayCounts(t *testing.T) {
	got := readAll(t, from([]byte(`{"traceEvents":["h"],"traceEvents":7,"traceEvents":[{"ph":"i","name":"a"}]}`)), Options{})
	if len(got.rows["instants"]) != 1 {
		t.Errorf("%+v", got)
	}
	got = readAll(t, from([]byte(`{"traceEvents":[{"ph":"i","name":"a"}],"traceEvents":7}`)), Options{})
	if !strings.Contains(got.err, "no array") {
		t.Errorf("%+v", got)
	}
}

// TestBasesOnBothSides: a base behind the events replaces one before them.
func TestBasesOnBothSides(t *testing.T) {
	got := readAll(t, from([]byte(`{"baseTimeNanoseconds":5,"traceEvents":[{"ph":"i","ts":1}],"baseTimeNanoseconds":7}`)), Options{})
	if rows := got.rows["instants"]; len(rows) != 1 || !strings.Contains(rows[0], "start_ns=1007 ") {
		t.Errorf("%+v", got)
	}
}

// TestLastCounts: of equal keys the last one counts, also where it is empty or null.
func TestLastCounts(t *testing.T) {
	wantRows(t, rowsOf(t, "cpu_events",
		`{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1,"External id":4},"args":{}}`,
		`{"ph":"X","name":"b","args":{"x":1},"args":{},"ts":1,"dur":1}`,
		`{"ph":"X","name":"c","args":{"x":1,"External id":4},"args":null,"ts":1,"dur":1}`,
		`{"ph":"X","name":"d","ts":"soon","ts":null,"dur":1}`,
		`{"ph":"X","name":"e","pid":[1],"pid":"p","ts":1,"dur":1}`,
		`{"ph":"X","name":"f","pid":[1],"pid":2,"pid":null,"ts":1,"dur":1,"args":{}}`,
		`{"ph":"X","name":"g","args":{},"args":{"x":2},"ts":1,"dur":1,"args":{}}`,
		`{"ph":"X","name":"h","args":{"x":1},"args":{"y":2},"ts":1,"dur":1}`,
		`{"ph":"X","name":"i","args":[1],"args":{"y":2,"stream":"x"},"ts":"a","ts":[2],"dur":1}`,
		`{"ph":"X","name":"j","args":{"stream":[1]},"args":{"stream":3},"ts":"a","ts":1,"dur":1}`,
		`{"ph":"X","name":"k","args":{"stream":3},"args":{"stream":[1]},"ts":1,"ts":"a","dur":1}`,
	),
		`name="a"`, `name="b"`, `name="c"`, `name="d" time_flag="bad_time"`, `name="e" pid_text="p"`, `name="f"`, `name="g"`, `name="h" args_json="{\"y\":2}"`,
		`name="i" args_json="{\"y\":2,\"stream\":\"x\",\"event.ts\":[2]}" time_flag="bad_time"`, `name="j" stream=3 start_ns=1000`, `name="k" args_json="{\"stream\":[1],\"event.ts\":\"a\"}"`,
	)
	for i, row := range rowsOf(t, "cpu_events",
		`{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1,"External id":4},"args":{}}`,
		`{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1,"External id":4},"args":{}}`,
		`{"ph":"X","name":"b","args":{"x":1},"args":{},"ts":1,"dur":1}`,
		`{"ph":"X","name":"d","ts":"soon","ts":null,"dur":1}`,
		`{"ph":"X","name":"e","pid":[1],"pid":"p","ts":1,"dur":1}`,
		`{"ph":"X","name":"f","pid":[1],"pid":2,"pid":null,"ts":1,"dur":1,"args":{}}`,
	) {
		if strings.Contains(row, "args_json") || strings.Contains(row, "external_id") || strings.Contains(row, "pid=") {
			t.Errorf("event %d keeps what does not count: %s", i, row)
		}
	}
}

// TestNoTime: events without a usable time are counted, whatever their phase.
func TestNoTime(t *testing.T) {
	var text strings.Builder
	for _, ph := range []string{"X", "B", "E", "C", "i", "s", "N", "M"} {
		text.WriteString(`{"ph":"` + ph + `","name":"a"},`)
	}
	got := readAll(t, from([]byte(`{"traceEvents":[`+text.String()+`{"ph":"X","ts":1,"dur":1}]}`)), Options{Workers: 1})
	if d := strings.Join(got.diags, "\n"); strings.Count(d, "bad_time") != 7 {
		t.Errorf("7 events have no time and need one:\n%s", d)
	}
}

// TestControlCharacters are counted alike whatever stands before them.
func TestControlCharacters(t *testing.T) {
	for _, events := range []string{
		`{"ph":"i","ts":1,"name":"a\u0001"},{"ph":"i","ts":1,"name":"a` + "\x01" + `"}`,
		`{"ph":"i","ts":1,"name":"a` + "\x01" + `"},{"ph":"i","ts":1,"name":"b"}`,
		`{"ph":"C","ts":1,"args":{"a\u0001":1}},{"ph":"i","ts":1,"name":"a` + "\x01" + `"}`,
	} {
		got := readAll(t, from([]byte(`{"traceEvents":[`+events+`]}`)), Options{Workers: 1})
		if d := strings.Join(got.diags, "\n"); strings.Count(d, "control_character") != 1 {
			t.Errorf("%q: %s", events, d)
		}
	}
	twice := `{"ph":"i","ts":1,"name":"a` + "\x01" + `"}`
	got := readAll(t, from([]byte(`{"traceEvents":[`+twice+`,`+twice+`]}`)), Options{Workers: 1})
	if d := strings.Join(got.diags, "\n"); strings.Count(d, "control_character") != 2 {
		t.Error(d)
	}
}
