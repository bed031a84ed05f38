package activity

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tracelake/schema"
)

func usage(err error) bool {
	var u *UsageError
	return errors.As(err, &u)
}

func TestParseDeviceUUIDs(t *testing.T) {
	for _, c := range []struct {
		in     []string
		shared map[int64]string
		traces map[string]map[int64]string
		bad    bool
	}{
		{in: nil, shared: map[int64]string{}},
		{in: []string{"1=B"}, shared: map[int64]string{1: "B"}},
		{in: []string{"A"}, shared: map[int64]string{0: "A"}},
		{in: []string{"0=A", "0=A"}, shared: map[int64]string{0: "A"}},
		{in: []string{"f.json:0=C", "0=A=B"}, shared: map[int64]string{0: "A=B"}, traces: map[string]map[int64]string{"f.json": {0: "C"}}},
		{in: []string{"a:b:2=C"}, shared: map[int64]string{}, traces: map[string]map[int64]string{"a:b": {2: "C"}}},
		{in: []string{"0=A", "A", "B"}, bad: true},
		{in: []string{"f:0=A", "f:0=B"}, bad: true},
		{in: []string{"a=b"}, bad: true},
		{in: []string{"+1=b"}, bad: true},
		{in: []string{"-1=b"}, bad: true},
		{in: []string{"=b"}, bad: true},
		{in: []string{"0="}, bad: true},
		{in: []string{""}, bad: true},
		{in: []string{":0=b"}, bad: true},
		{in: []string{"f:=b"}, bad: true},
		{in: []string{"99999999999999999999=b"}, bad: true},
	} {
		u, err := ParseDeviceUUIDs(c.in)
		if usage(err) != c.bad {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if c.traces == nil {
			c.traces = map[string]map[int64]string{}
		}
		if !c.bad && (!reflect.DeepEqual(u.Shared, c.shared) || !reflect.DeepEqual(u.selected, c.traces)) {
			t.Errorf("%q: %v %v", c.in, u.Shared, u.selected)
		}
	}
}

func TestBind(t *testing.T) {
	dir := t.TempDir()
	a, b, other := filepath.Join(dir, "a", "x.json"), filepath.Join(dir, "b", "x.json"), filepath.Join(dir, "y.json")
	for _, p := range []string{a, b, other} {
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	alias := filepath.Join(dir, "alias")
	if err := os.Symlink(filepath.Join(dir, "a"), alias); err != nil {
		t.Fatal(err)
	}
	paths := []string{a, b, other}
	for _, c := range []struct {
		in   []string
		a, y map[int64]string
		bad  bool
	}{
		{in: []string{"0=S", a + ":0=A", "y.json:1=Y"}, a: map[int64]string{0: "A"}, y: map[int64]string{0: "S", 1: "Y"}},
		{in: []string{alias + "/x.json:0=A"}, a: map[int64]string{0: "A"}, y: map[int64]string{}},
		{in: []string{alias + "/x.json:0=A", a + ":0=A"}, a: map[int64]string{0: "A"}, y: map[int64]string{}},
		{in: []string{alias + "/x.json:0=A", a + ":0=B"}, bad: true},
		{in: []string{"x.json:0=A"}, bad: true}, // two traces have the name
		{in: []string{"z.json:0=A"}, bad: true},
	} {
		u, err := ParseDeviceUUIDs(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Bind(paths); usage(err) != c.bad {
			t.Errorf("%q: %v", c.in, err)
		} else if err == nil && (!reflect.DeepEqual(u.For(a), c.a) || !reflect.DeepEqual(u.For(other), c.y)) {
			t.Errorf("%q: %v %v", c.in, u.For(a), u.For(other))
		}
	}
}

// summaryOf is the summary of a trace with device 0 used by the processes
// whose IDs are given, or, with none, by the launching processes.
func summaryOf(source string, launching []int64, pids ...int64) *Summary {
	s := &Summary{Host: json.RawMessage(`"h"`), Rank: json.RawMessage("null"), Processes: launching, Devices: map[string]DeviceSummary{}}
	add := func(key string, pid schema.Opt[int64]) {
		d := DeviceSummary{PID: pid, Ordinal: schema.Some[int64](0)}
		if source != "" {
			d.UUIDSource = &source
		}
		s.Devices[key] = d
	}
	for _, pid := range pids {
		add(string(rune('a'+pid)), schema.Some(pid))
	}
	if len(pids) == 0 {
		add("0", schema.Opt[int64]{})
	}
	return s
}

func TestCheckShared(t *testing.T) {
	ranked := summaryOf(fromOption, []int64{1})
	ranked.Rank = json.RawMessage("1")
	none := summaryOf(fromOption, nil)
	none.Devices["None"] = DeviceSummary{}
	for _, c := range []struct {
		name      string
		options   []string
		summaries []*Summary
		bad       bool
	}{
		{"two processes", []string{"0=A"}, []*Summary{summaryOf(fromOption, []int64{1}), summaryOf(fromOption, []int64{2})}, true},
		{"several windows of one process", []string{"0=A"}, []*Summary{summaryOf(fromOption, []int64{1}), summaryOf(fromOption, []int64{1})}, false},
		{"one process, other rank", []string{"0=A"}, []*Summary{summaryOf(fromOption, []int64{1}), ranked}, true},
		{"own entries", []string{"one:0=A", "two:0=B"}, []*Summary{summaryOf(fromOption, []int64{1}), summaryOf(fromOption, []int64{2})}, false},
		{"launching processes of a trace are one", []string{"0=A"}, []*Summary{summaryOf(fromOption, []int64{1, 2}), summaryOf(fromOption, []int64{1, 2})}, false},
		{"two processes of a report", []string{"one:0=A"}, []*Summary{summaryOf(fromOption, nil, 1, 2), summaryOf("", nil, 3)}, true},
		{"never applied", []string{"0=A"}, []*Summary{summaryOf(fromTrace, nil, 1, 2), summaryOf("", nil, 3)}, false},
		{"another ordinal", []string{"1=A"}, []*Summary{summaryOf("", []int64{1}), summaryOf("", []int64{2})}, false},
		{"events without a device", []string{"0=A"}, []*Summary{none, none}, false},
	} {
		u, err := ParseDeviceUUIDs(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if err := u.Bind([]string{"one", "two"}); err != nil {
			t.Fatal(err)
		}
		if err := u.CheckShared([]string{"one", "two"}, c.summaries); usage(err) != c.bad {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestReadDeviceUUIDsByPID(t *testing.T) {
	path := filepath.Join(t.TempDir(), "uuids.json")
	for text, want := range map[string]map[int64]map[int64]string{
		`{"100": {"0": "GPU-a", "1": "GPU-b"}, "200": {}}`: {100: {0: "GPU-a", 1: "GPU-b"}, 200: {}},
		`{}`:                           {},
		`{"x": {"0": "A"}}`:            nil,
		`{"-1": {"0": "A"}}`:           nil,
		`{"1": {"gpu": "A"}}`:          nil,
		`{"1": {"-1": "A"}}`:           nil,
		`{"1": {"0": ""}}`:             nil,
		`{"1": {"0": 5}}`:              nil,
		`{"1": {"0": "A", "00": "B"}}`: nil,
		`[]`:                           nil,
		`{`:                            nil,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := ReadDeviceUUIDsByPID(path)
		if usage(err) != (want == nil) || want != nil && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, %v", text, got, err)
		} else if err != nil && !strings.Contains(err.Error(), "uuids-by-pid") && !strings.Contains(err.Error(), "twice") {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := ReadDeviceUUIDsByPID(path + "-missing"); !usage(err) {
		t.Errorf("missing: %v", err)
	}
}

func TestUUIDSources(t *testing.T) {
	trace := traceOf(event{start: 1, end: 2, device: 0}, event{start: 3, end: 4, device: 1}, event{start: 5, end: 6, device: 2})
	trace.GPU.PID = []int64{7, 7, 7}
	trace.GPU.Names = append(trace.GPU.Names, "GPU-own")
	trace.GPU.UUID = []uint32{2, 0, 0}
	o := Options{
		RunID: "r", SessionID: "s", DeviceUUIDs: map[int64]string{0: "GPU-own", 1: "GPU-option"},
		DeviceUUIDsByPID: map[int64]map[int64]string{7: {1: "GPU-log", 2: "GPU-log"}},
	}
	r, err := Capture(trace, "x", o)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string][2]string{
		"7/0": {"GPU-own", fromTrace}, "7/1": {"GPU-option", fromOption}, "7/2": {"GPU-log", fromLog},
	} {
		d := r.Summary.Devices[key]
		if d.UUID == nil || string(*d.UUID) != want[0] || *d.UUIDSource != want[1] {
			t.Errorf("device %s: %+v", key, d)
		}
	}
	o.DeviceUUIDs[0] = "GPU-other"
	if _, err := Capture(trace, "x", o); !usage(err) || !strings.Contains(err.Error(), "process 7's device 0 GPU-own") {
		t.Errorf("contradiction: %v", err)
	}
	if _, err := Capture(trace, "x", Options{Detail: "both"}); !usage(err) || !strings.Contains(err.Error(), "detail") {
		t.Errorf("detail: %v", err)
	}
}
