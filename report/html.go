package report

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"html/template"
	"io"
	"strconv"

	"tracelake/analyze/query"
)

//go:embed assets
var assets embed.FS

// scripts run in this order, in one scope; the chart library comes before them
// in an element of its own.
var scripts = []string{"format.js", "table.js", "bars.js", "timeline.js", "iterations.js", "page.js"}

var page = template.Must(template.ParseFS(assets, "assets/page.html"))

// pageValues are what the template shows without a script.
type pageValues struct {
	*Report
	Policy     string
	Style      template.CSS
	Library    template.JS
	Script     template.JS
	Data       template.JS
	Totals     map[string]any
	Findings   []map[string]any
	DataLoss   []map[string]any
	Inputs     []map[string]any
	InputsMore int64
	Licence    string // of the chart library
}

// maxShownInputs is how many inputs the head of the page lists; the table
// further down has more.
const maxShownInputs = 20

// Write writes the page. The same report gives the same bytes.
func (r *Report) Write(w io.Writer) error {
	style := asset("uplot/uPlot.min.css") + "\n" + asset("page.css")
	library := asset("uplot/uPlot.iife.min.js")
	var own bytes.Buffer
	own.WriteString("\"use strict\";\n(() => {\n")
	for _, name := range scripts {
		own.WriteString(asset(name))
	}
	own.WriteString("})();\n")

	v := pageValues{
		Report: r,
		// Nothing may be fetched, and nothing but our own scripts may run.
		Policy: "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src " + hash(style) +
			"; script-src " + hash(library) + " " + hash(own.String()),
		Style:    template.CSS(style),         //nolint:gosec // our own file
		Library:  template.JS(library),        //nolint:gosec // the same
		Script:   template.JS(own.String()),   //nolint:gosec // the same
		Data:     template.JS(r.appendJSON()), //nolint:gosec // JSON without <, > and &
		Totals:   r.Tables["totals"].maps(1)[0],
		Findings: r.Tables["findings"].maps(maxShownInputs),
		Inputs:   r.Tables["inputs"].maps(maxShownInputs),
		Licence:  asset("uplot/LICENSE"),
	}
	v.InputsMore = r.Tables["inputs"].Total - int64(len(v.Inputs))
	for _, d := range r.Tables["diagnostics"].maps(maxRows) {
		if d["severity"] == "data_loss" || d["severity"] == "error" {
			v.DataLoss = append(v.DataLoss, d)
		}
	}
	return page.Execute(w, v)
}

func asset(name string) string {
	data, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	return string(data)
}

// hash names a script or style in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// maps returns the first rows by column.
func (t *Table) maps(limit int) []map[string]any {
	var out []map[string]any
	for _, r := range t.Rows[:min(limit, len(t.Rows))] {
		m := map[string]any{}
		for i, c := range t.Columns {
			m[c.Name] = r[i]
		}
		out = append(out, m)
	}
	return out
}

// appendJSON returns the data for the scripts. Nothing in it can end the
// element that it stands in.
func (r *Report) appendJSON() []byte {
	var b []byte
	b = append(b, `{"tables":{`...)
	first := true
	for _, s := range sources {
		t := r.Tables[s.name]
		if t == nil {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(appendText(b, s.name), ':')
		b = t.appendJSON(b)
	}
	b = append(b, `},"timeline":`...)
	b = r.Timeline.appendJSON(b)
	b = append(b, `,"limits":{"top":`...)
	b = strconv.AppendInt(b, int64(r.Top), 10)
	b = append(b, `,"points":`...)
	b = strconv.AppendInt(b, maxPoints, 10)
	b = append(b, "}}"...)
	var safe bytes.Buffer
	json.HTMLEscape(&safe, b)
	return safe.Bytes()
}

func (t *Table) appendJSON(b []byte) []byte {
	b = append(b, `{"title":`...)
	b = appendText(b, t.Title)
	b = append(b, `,"answers":`...)
	b = appendText(b, t.Answers)
	b = append(b, `,"needs":`...)
	b = appendText(b, t.Needs)
	b = append(b, `,"total":`...)
	b = strconv.AppendInt(b, t.Total, 10)
	b = append(b, `,"columns":[`...)
	for i, c := range t.Columns {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = append(appendText(b, c.Name), ',')
		b = append(appendText(b, c.Doc), ']')
	}
	b = append(b, `],"rows":[`...)
	for i, r := range t.Rows {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '\n')
		b = appendList(b, r, appendValue)
	}
	return append(b, "]}"...)
}

func (t *Timeline) appendJSON(b []byte) []byte {
	b = append(b, `{"leftOut":`...)
	b = strconv.AppendInt(b, t.LeftOut, 10)
	b = append(b, `,"classes":`...)
	b = appendList(b, Classes, appendText)
	b = append(b, `,"names":`...)
	b = appendList(b, t.Names, appendText)
	b = append(b, `,"devices":[`...)
	for i, d := range t.Devices {
		if i > 0 {
			b = append(b, ',')
		}
		// run, rank, trace_id, process, device, gpu, first, last, offset, events, cell, streams
		b = append(b, "\n{\"of\":"...)
		b = appendList(b, []any{d.Run, d.Rank, d.TraceID, d.Process, d.Ordinal, d.GPU, d.FirstNS, d.LastNS, d.OffsetNS, d.Events, d.CellNS, d.Streams}, appendValue)
		b = append(b, `,"lanes":[`...)
		for j, l := range d.Lanes {
			if j > 0 {
				b = append(b, ',')
			}
			b = l.appendJSON(b)
		}
		b = append(b, "]}"...)
	}
	return append(b, "]}"...)
}

func (l *Lane) appendJSON(b []byte) []byte {
	b = append(b, `{"stream":`...)
	b = appendValue(b, l.Stream)
	b = append(b, `,"events":`...)
	b = strconv.AppendInt(b, l.Events, 10)
	b = appendList(append(b, `,"start":`...), steps(l.Start), appendNumber)
	b = appendList(append(b, `,"dur":`...), l.Dur, appendNumber)
	b = appendList(append(b, `,"cls":`...), l.Class, appendNumber)
	b = appendList(append(b, `,"name":`...), l.Name, appendNumber)
	if l.merged() {
		b = appendList(append(b, `,"count":`...), l.Count, appendNumber)
		b = appendList(append(b, `,"busy":`...), l.Busy, appendNumber)
	}
	return append(b, '}')
}

// merged tells whether any box stands for several events.
func (l *Lane) merged() bool {
	for _, n := range l.Count {
		if n > 1 {
			return true
		}
	}
	return false
}

// steps returns the differences of sorted numbers, which take fewer digits.
func steps(list []int64) []int64 {
	out := make([]int64, len(list))
	var before int64
	for i, n := range list {
		out[i], before = n-before, n
	}
	return out
}

// appendList appends an array, each element as one does.
func appendList[T any](b []byte, list []T, one func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, v := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(b, v)
	}
	return append(b, ']')
}

func appendNumber[T int | int64](b []byte, n T) []byte { return strconv.AppendInt(b, int64(n), 10) }

func appendText(b []byte, s string) []byte { return query.AppendJSON(b, s) }

// appendValue writes a value so that a script reads all its digits: numbers of
// scripts have 53 bits.
func appendValue(b []byte, v any) []byte {
	const exact = 1 << 53
	if n, ok := v.(int64); ok && (n > exact || n < -exact) {
		return appendText(b, strconv.FormatInt(n, 10))
	}
	if n, ok := v.(uint64); ok && n > exact {
		return appendText(b, strconv.FormatUint(n, 10))
	}
	if n, ok := v.(query.Number); ok {
		return appendText(b, string(n))
	}
	return query.AppendJSON(b, v)
}
