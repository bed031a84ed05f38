package kineto

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"tracelake/schema"
)

// row is one row as column name to value: int64, float64 or string.
type row struct {
	table string
	cols  map[string]any
}

// readRows reads a trace and returns its rows by event index.
func readRows(t testing.TB, text []byte, o Options) (map[int64][]row, *Result, error) {
	t.Helper()
	for try := 0; ; try++ {
		out := map[int64][]row{}
		put := func(tab *schema.Table, n int, each func(c int, put func(r int, v any))) {
			rows := make([]row, n)
			for i := range rows {
				rows[i] = row{tab.Name, map[string]any{}}
			}
			for c := range tab.Columns {
				each(c, func(r int, v any) { rows[r].cols[tab.Columns[c].Name] = v })
			}
			for _, r := range rows {
				i := r.cols["event_index"].(int64)
				out[i] = append(out[i], r)
			}
		}
		value := func(col *schema.Column, x int64, text func(int64) string) any {
			switch col.Type {
			case schema.String:
				return text(x)
			case schema.Float64:
				return math.Float64frombits(uint64(x))
			}
			return x
		}
		o.RowGroups = func(tab *schema.Table, n int, cols []schema.Vector, done func()) error {
			put(tab, n, func(c int, set func(int, any)) {
				for k, x := range cols[c].Vals {
					r := k
					if cols[c].Rows != nil {
						r = int(cols[c].Rows[k])
					}
					if k > 0 && cols[c].Rows != nil && cols[c].Rows[k-1] >= cols[c].Rows[k] {
						t.Fatalf("%s.%s has two values in row %d", tab.Name, tab.Columns[c].Name, r)
					}
					set(r, value(&tab.Columns[c], x, func(i int64) string { return cols[c].Dict[i] }))
				}
			})
			done()
			return nil
		}
		res, err := Read(context.Background(), bytes.NewReader(text), o)
		var again *RestartError
		if errors.As(err, &again) && try < 20 {
			o.BaseNS, o.BaseKnown, o.SkipTo = again.BaseNS, again.BaseKnown, again.SkipTo
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		for _, r := range []*Retained{res.GPU, res.Launches, res.Ranges} {
			put(r.Table, r.Len(), func(c int, set func(int, any)) {
				col := r.Table.Columns[c]
				if col.Name == "kind" {
					return
				}
				for i, x := range r.ValuesAt(c) {
					if x != schema.Null {
						set(i, value(&col, x, r.Name))
					}
				}
			})
		}
		return out, res, nil
	}
}

// reference reads the events of a trace with encoding/json. ok is false for
// what it does not accept or what is no trace.
func reference(text []byte) (events []any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var doc any
	if d.Decode(&doc) != nil {
		return nil, false
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, false
	}
	switch x := doc.(type) {
	case []any:
		return x, true
	case map[string]any:
		events, ok = x["traceEvents"].([]any)
		return events, ok
	}
	return nil, false
}

func isObject(e any) bool {
	m, ok := e.(map[string]any)
	return ok && len(m) > 0
}

// checkAgainst compares every event with what encoding/json reads: its table,
// its times and each of its arguments, which must stand in a column or in
// args_json.
func checkAgainst(t testing.TB, text []byte, o Options) {
	t.Helper()
	events, ok := reference(text)
	rows, res, err := readRows(t, text, o)
	if !ok {
		return // rejected or repaired: other tests look at that
	}
	if err != nil {
		var rejected *RejectedError
		if !errors.As(err, &rejected) {
			t.Fatal(err)
		}
		for _, e := range events {
			if m, is := e.(map[string]any); is && m["ph"] != nil && !strings.Contains(err.Error(), "deeper") && !strings.Contains(err.Error(), "event arrays") {
				t.Fatalf("rejected though encoding/json reads events: %v", err)
			}
		}
		return
	}
	if n := res.Diags.Count(schema.BrokenEvent) + res.Diags.Count(schema.TextCut); n > 0 {
		t.Fatalf("%d events lost that encoding/json reads", n)
	}
	if int(res.Events) != len(events) {
		t.Fatalf("%d events, encoding/json reads %d", res.Events, len(events))
	}
	for i, e := range events {
		m, _ := e.(map[string]any)
		ph := m["ph"]
		if ph == "B" || ph == "E" {
			continue
		}
		if !isObject(e) || len(m) == 1 && emptyArgs(m["args"]) && reflect.DeepEqual(keys(m), []string{"args"}) {
			continue
		}
		if ph == "C" {
			continue
		}
		got := rows[int64(i)]
		if len(got) != 1 {
			t.Fatalf("event %d has %d rows: %v", i, len(got), e)
		}
		checkEvent(t, i, m, got[0], res.BaseNS)
	}
}

func keys(m map[string]any) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

func emptyArgs(v any) bool {
	if v == nil {
		return true
	}
	m, ok := v.(map[string]any)
	return ok && len(m) == 0
}

func checkEvent(t testing.TB, i int, m map[string]any, r row, base int64) {
	t.Helper()
	want := map[any]string{"s": "flows", "t": "flows", "f": "flows", "M": "metadata"}[phKey(m["ph"])]
	if phKey(m["ph"]) == "X" {
		want = "cpu_events"
		if c, ok := m["cat"].(string); ok {
			switch classify(c) {
			case classKernel, classMemcpy, classMemset:
				want = "gpu_events"
			case classLaunch:
				want = "launches"
			case classRange, classGPURange:
				want = "ranges"
			case classOperator:
				if n, ok := m["name"].(string); ok && len(n) > len(stepPrefix) && strings.HasPrefix(n, stepPrefix) {
					want = "ranges"
				}
			}
		}
	} else if want == "" {
		want = "instants"
	}
	if r.table != want {
		t.Fatalf("event %d is in %s, want %s: %v", i, r.table, want, m)
	}
	var rest map[string]json.RawMessage
	if s, ok := r.cols["args_json"].(string); ok {
		d := json.NewDecoder(strings.NewReader(s))
		if err := d.Decode(&rest); err != nil {
			t.Fatalf("event %d: args_json %q: %v", i, s, err)
		}
	}
	if ns, ok := exactNS(m["ts"]); ok {
		abs := ns
		if r.table != "gpu_events" && r.table != "launches" && r.table != "ranges" { // retained times lack the base
			abs += base
		}
		if (abs > ns) == (base > 0) || base == 0 || abs == ns {
			if got, ok := r.cols["start_ns"]; !ok || got != abs {
				t.Fatalf("event %d: start_ns %v, want %d from %v", i, got, abs, m["ts"])
			}
		}
	}
	if name, ok := m["name"].(string); ok && r.table != "launches" && r.table != "metadata" {
		if r.cols["name"] != strings.ToValidUTF8(name, "\uFFFD") {
			t.Fatalf("event %d: name %q, want %q", i, r.cols["name"], name)
		}
	}
	args, ok := m["args"].(map[string]any)
	if !ok {
		return
	}
	for k, v := range args {
		if v == nil {
			if _, known := argSlot[k]; known {
				continue
			}
		}
		if alias(args, k) {
			continue
		}
		if !hasArgument(r, rest, k, v) {
			t.Fatalf("event %d: argument %q = %v is lost; columns %v", i, k, v, r.cols)
		}
	}
}

func phKey(v any) any {
	if s, ok := v.(string); ok {
		return s
	}
	return nil
}

// alias reports whether two spellings of one argument stand in an event.
func alias(args map[string]any, k string) bool {
	n := 0
	for other := range args {
		if s, ok := argSlot[other]; ok {
			if mine, ok := argSlot[k]; ok && mine == s {
				n++
			}
		}
	}
	return n > 1
}

// hasArgument looks for an argument in the columns of its table and in
// args_json.
func hasArgument(r row, rest map[string]json.RawMessage, k string, v any) bool {
	if raw, ok := rest[k]; ok && sameJSON(raw, v) {
		return true
	}
	s, known := argSlot[k]
	if !known {
		return false
	}
	if raw, ok := rest[slots[s].name]; ok && (sameJSON(raw, v) || sameNumber(string(raw), v)) {
		return true
	}
	for id := range specs {
		if specs[id].table.Name != r.table || tableID(id) == tabBeginEnd {
			continue
		}
		if slots[s].kind == kindDims && specs[id].col["grid_x"] > 0 {
			col := map[slot]string{slotGrid: "grid_", slotBlock: "block_"}[s]
			list, _ := v.([]any)
			if len(list) != 3 {
				return false
			}
			for n, x := range list {
				if !sameNumber(fmt.Sprint(r.cols[col+"xyz"[n:n+1]]), x) {
					return false
				}
			}
			return true
		}
		c := specs[id].slotCol[s]
		if c < 0 {
			return false
		}
		got, ok := r.cols[specs[id].table.Columns[c].Name]
		if (k == "correlation" || k == "graph id" || k == "graph node id") && !ok {
			return true // 0 counts as none
		}
		switch x := got.(type) {
		case int64:
			return sameNumber(strconv.FormatInt(x, 10), v) || fmt.Sprint(v) == strconv.FormatUint(uint64(x), 10)
		case float64:
			f, err := strconv.ParseFloat(fmt.Sprint(v), 64)
			return err == nil && f == x
		case string:
			if t, is := v.(string); is && slots[s].kind == kindText {
				return x == strings.ToValidUTF8(t, "\uFFFD")
			}
			return sameJSON(json.RawMessage(x), v)
		}
	}
	return false
}

func sameJSON(raw json.RawMessage, v any) bool {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var got any
	if d.Decode(&got) != nil {
		return false
	}
	return reflect.DeepEqual(got, v)
}

// exact returns what a decimal text says, or nil where it says nothing or has an
// exponent beyond the limit. Zero is zero whatever its exponent, which may be too
// large for big.Rat.
func exact(text string, limit int) *big.Rat {
	if k := strings.IndexAny(text, "eE"); k >= 0 {
		if strings.Trim(text[:k], "+-0.") == "" && k > 0 {
			text = text[:k]
		} else if e, err := strconv.Atoi(text[k+1:]); err != nil || e > limit || e < -limit {
			return nil
		}
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil
	}
	return r
}

// sameNumber compares a decimal text with a number or text exactly.
func sameNumber(text string, v any) bool {
	s := strings.TrimSpace(fmt.Sprint(v))
	if len(text) > 400 || len(s) > 400 {
		return false
	}
	a, b := exact(text, 400), exact(s, 400)
	return a != nil && b != nil && a.Cmp(b) == 0
}

// exactNS is decimalNS by other means. ok is false where the value is no
// plain number or does not fit.
func exactNS(v any) (int64, bool) {
	n, is := v.(json.Number)
	if !is || len(n) > 60 {
		return 0, false
	}
	r := exact(string(n), 40)
	if r == nil {
		return 0, false
	}
	r.Mul(r, big.NewRat(1000, 1))
	num, den := new(big.Int).Set(r.Num()), r.Denom()
	q, m := new(big.Int), new(big.Int)
	q.QuoRem(num, den, m)
	m.Abs(m).Lsh(m, 1)
	if c := m.Cmp(den); c > 0 || c == 0 && q.Bit(0) == 1 {
		q.Add(q, big.NewInt(int64(r.Sign())))
	}
	if !q.IsInt64() || q.Int64() == schema.Null {
		return 0, false
	}
	return q.Int64(), true
}

// TestAgainstEncodingJSON compares all small traces, whole and in tiny chunks.
func TestAgainstEncodingJSON(t *testing.T) {
	for name, b := range inputs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if text := plainText(b); text != nil {
				checkAgainst(t, text, Options{Workers: 2})
				checkAgainst(t, text, Options{Workers: 2, ChunkSize: max(900, len(text)/9), RowGroup: 50})
			}
		})
	}
}
