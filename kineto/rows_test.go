package kineto

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"tracelake/schema"
)

// outcome is everything that reading a trace gives, in a comparable form.
type outcome struct {
	err    string
	rows   map[string][]string // by table, one line per row
	diags  []string
	header string
	other  string
}

// readAll reads a trace and gathers every row of every table.
func readAll(t testing.TB, src func() io.Reader, o Options) outcome {
	t.Helper()
	for try := 0; ; try++ {
		out := outcome{rows: map[string][]string{}}
		o.RowGroups = func(tab *schema.Table, n int, cols []schema.Vector, done func()) error {
			out.rows[tab.Name] = append(out.rows[tab.Name], lines(tab, n, cols)...)
			done()
			return nil
		}
		res, err := Read(context.Background(), src(), o)
		var again *RestartError
		if errors.As(err, &again) && try < 20 {
			o.BaseNS, o.BaseKnown, o.SkipTo = again.BaseNS, again.BaseKnown, again.SkipTo
			continue
		}
		var rejected *RejectedError
		if err != nil {
			if !errors.As(err, &rejected) {
				t.Fatalf("error is no rejection: %v", err)
			}
			out.err = err.Error()
			return out
		}
		for _, r := range []*Retained{res.GPU, res.Launches, res.Ranges} {
			out.rows[r.Table.Name] = retainedLines(r)
		}
		for _, d := range res.Diags.List() {
			out.diags = append(out.diags, fmt.Sprintf("%s offset=%d event=%d n=%d %s", d.Code, d.Offset, d.EventIndex, d.Count, d.Message))
		}
		out.header = fmt.Sprintf("%+v", res.Header)
		kinds := make([]string, 0, len(res.Kinds))
		for k, n := range res.Kinds {
			kinds = append(kinds, fmt.Sprintf("%q %d", k, n))
		}
		sort.Strings(kinds)
		out.other = fmt.Sprint(res.Events, res.Rows, res.TextBytes, res.Digest, res.BaseNS, res.Fine, res.First, res.Last, res.ZeroLost, res.Array, kinds)
		return out
	}
}

func lines(tab *schema.Table, n int, cols []schema.Vector) []string {
	out := make([]strings.Builder, n)
	for c, v := range cols {
		col := &tab.Columns[c]
		for k, x := range v.Vals {
			r := k
			if v.Rows != nil {
				r = int(v.Rows[k])
			}
			fmt.Fprintf(&out[r], "%s=%s ", col.Name, cell(col, x, func(i int64) string { return v.Dict[i] }))
		}
		for _, s := range v.Dict {
			if strings.ToValidUTF8(s, "") != s {
				panic("a column holds text that is not UTF-8")
			}
		}
	}
	text := make([]string, n)
	for i := range out {
		text[i] = out[i].String()
	}
	return text
}

func cell(col *schema.Column, x int64, text func(int64) string) string {
	switch col.Type {
	case schema.String:
		return fmt.Sprintf("%q", text(x))
	case schema.Float64:
		return fmt.Sprint(math.Float64frombits(uint64(x)))
	}
	return fmt.Sprint(x)
}

func retainedLines(r *Retained) []string {
	out := make([]strings.Builder, r.Len())
	for c := range r.Table.Columns {
		col := &r.Table.Columns[c]
		for i, x := range r.ValuesAt(c) {
			if x == schema.Null {
				continue
			}
			if col.Name == "kind" {
				fmt.Fprintf(&out[i], "kind=%v ", schema.Kind(x))
				continue
			}
			fmt.Fprintf(&out[i], "%s=%s ", col.Name, cell(col, x, r.Name))
		}
	}
	text := make([]string, len(out))
	for i := range out {
		text[i] = out[i].String()
	}
	return text
}

// diff describes the first difference between two outcomes, "" for none.
func (a *outcome) diff(b *outcome) string {
	switch {
	case a.err != b.err:
		return fmt.Sprintf("error %q and %q", a.err, b.err)
	case a.header != b.header:
		return fmt.Sprintf("header\n%s\n%s", a.header, b.header)
	case a.other != b.other:
		return fmt.Sprintf("totals\n%s\n%s", a.other, b.other)
	}
	for t := range a.rows {
		x, y := a.rows[t], b.rows[t]
		for i := range min(len(x), len(y)) {
			if x[i] != y[i] {
				return fmt.Sprintf("%s row %d\n%s\n%s", t, i, x[i], y[i])
			}
		}
		if len(x) != len(y) {
			return fmt.Sprintf("%s has %d and %d rows", t, len(x), len(y))
		}
	}
	if x, y := strings.Join(a.diags, "\n"), strings.Join(b.diags, "\n"); x != y {
		return fmt.Sprintf("diagnostics\n%s\n--\n%s", x, y)
	}
	return ""
}

func from(b []byte) func() io.Reader { return func() io.Reader { return bytes.NewReader(b) } }

// inputs returns small traces: those of testdata, and the broken ones of the
// shared folder where that is at hand.
func inputs(t testing.TB) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	dirs := []string{"../testdata/visible", "../testdata/own", "../testdata/stormlog", filepath.Join(sharedDir(), "traces/pathological")}
	for _, dir := range dirs {
		files, _ := filepath.Glob(filepath.Join(dir, "*.json*"))
		for _, f := range files {
			if strings.HasSuffix(f, ".jsonl") {
				continue
			}
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if len(b) < 1<<20 {
				out[filepath.Base(filepath.Dir(f))+"/"+filepath.Base(f)] = b
			}
		}
	}
	if len(out) < 15 {
		t.Fatalf("only %d inputs", len(out))
	}
	return out
}

// sharedDir is where traces lie that are not part of the repository.
func sharedDir() string {
	if d := os.Getenv("TRACELAKE_SHARED"); d != "" {
		return d
	}
	return "../../shared"
}
