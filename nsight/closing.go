package nsight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tracelake/schema"
)

// ignorable are tables that hold nothing about events: they are known and left
// out, mostly because they are private.
var ignorable = []string{
	"META_DATA_CAPTURE", "META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SYSTEM_ENV", "ProcessStreams", "ANALYSIS_FILE",
	"ANALYSIS_DETAILS", "TARGET_INFO_CUDA_CONTEXT_INFO", "TARGET_INFO_CUDA_STREAM", "TARGET_INFO_CUDA_NULL_STREAM",
	"TARGET_INFO_NIC_INFO", "TARGET_INFO_NVTX_CUDA_STREAM", "SystemInfo", "UnwindMethodType", "TARGET_INFO_CUDA_DEVICE",
	"TARGET_INFO_GPU_METRICS", "PROCESSES", "ThreadNames", "StringIds",
}

// closing notes what the report says about itself and what was left out.
func (r *reader) closing(ctx context.Context, g *gpuTables, calls *read) error {
	err := r.scan(ctx, "DIAGNOSTIC_EVENT", append(ints("severity"), want{"text", text}), func(b *batch) error {
		for i := range b.n {
			severity, n := cell(b, 0, i), cell(b, 1, i)
			level, wanted := map[int64]string{2: "warning", 3: "error"}[severity] // 4 is verbose
			if !wanted || n == schema.Null {
				continue
			}
			r.hash("diagnostic "+b.texts.list[n], uint64(severity))
			r.note(schema.ProfilerSays, 1, level+": "+shorten(b.texts.list[n]))
		}
		return nil
	})
	if err != nil {
		return err
	}
	cuda := calls.n
	for _, t := range g.all() {
		cuda += t.n
	}
	tables := 0
	for _, t := range []string{tableKernel, tableMemcpy, tableMemset, tableGraph, tableRuntime} {
		if find(r.have, t) != "" {
			tables++
		}
	}
	switch {
	case tables == 0:
		r.note(schema.NoGPUTables, 1, "the report holds no CUDA tables: record with nsys profile --trace=cuda,nvtx")
	case cuda > 0 && cuda == calls.n:
		r.note(schema.NoGPUWork, 1, "the report records CUDA calls but no kernels, copies or memsets")
	}
	r.note(schema.BadTime, r.times.bad, "rows without a time that can be used")
	r.note(schema.MissingDur, r.times.missing, "rows without a duration")
	r.note(schema.NegativeDur, r.times.negative, "rows that end before they start")
	r.note(schema.OddArgument, r.odd, "values that their column cannot hold: fractions were cut off, others are missing")
	return r.unread(ctx)
}

// unread lists the tables with rows that were not imported.
func (r *reader) unread(ctx context.Context) error {
	var left []string
	for _, n := range r.have {
		// The rows of a view are those of other tables.
		if r.used[n] || r.src.view(n) || slices.Contains(ignorable, n) || strings.HasPrefix(n, "ENUM_") || strings.HasPrefix(n, "sqlite_") {
			continue
		}
		// What cannot be read does not matter where nothing is imported.
		if some, err := r.some(ctx, n); some || err != nil && ctx.Err() == nil {
			left = append(left, n)
		}
	}
	if len(left) > 0 {
		slices.Sort(left)
		const most = 40
		message := strings.Join(left[:min(most, len(left))], ", ")
		if len(left) > most {
			message += fmt.Sprintf(" and %d more", len(left)-most)
		}
		r.note(schema.UnreadTable, int64(len(left)), "not imported: "+message)
	}
	return nil
}

// some reports whether a table has rows.
func (r *reader) some(ctx context.Context, table string) (bool, error) {
	cols, err := r.src.columns(table)
	if err != nil || len(cols) == 0 {
		return false, err
	}
	found := false
	stop := errStop
	err = r.src.scan(ctx, table, []want{{cols[0], integer}}, nil, func(b *batch) error {
		if b.n > 0 {
			found = true
			return stop
		}
		return nil
	})
	if err == stop { //nolint:errorlint // our own value
		err = nil
	}
	return found, err
}
