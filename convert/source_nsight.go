package convert

import (
	"context"

	"tracelake/nsight"
	"tracelake/schema"
)

// nsightReader reads an export of Nsight Systems.
type nsightReader struct {
	path string
	kind nsight.Kind
}

func (*nsightReader) source() string { return "nsys" }

func (n *nsightReader) read(ctx context.Context, o reading) (*loaded, error) {
	res, err := nsight.Read(ctx, n.path, nsight.Options{
		Workers: o.o.Workers, RowGroup: o.o.RowGroup, RowGroups: o.sink, Gate: o.gate, Progress: o.progress, Library: o.o.Library,
	})
	if err != nil {
		return nil, err
	}
	return fromNsight(res), nil
}

func fromNsight(res *nsight.Result) *loaded {
	h := &res.Header
	l := &loaded{
		source: "nsys", base: res.BaseNS, gpu: res.GPU, launches: res.Launches, ranges: res.Ranges,
		diags: res.Diags, events: res.Events, durations: res.Events, rows: res.Rows, textBytes: res.Bytes, digest: res.Digest,
		fine: true, first: res.First, last: res.Last, absolute: res.Absolute, byProcess: true,
		header: header{Host: h.Host, Rest: h.JSON()},
	}
	if !h.Normalized {
		l.header.Base = h.UTC
	}
	for k, n := range res.Kinds {
		l.kinds = append(l.kinds, KindCount{Category: k, Events: n})
	}
	text := func(s string) schema.Opt[string] { return schema.Opt[string]{V: s, OK: s != ""} }
	for _, d := range res.Devices {
		l.header.Devices = append(l.header.Devices, device{
			deviceKey: deviceKey{d.Process, d.Ordinal}, Name: text(d.Name), UUID: text(d.UUID),
			Memory: d.Memory, SMs: d.SMs, Major: d.Major, Minor: d.Minor, WarpSize: d.WarpSize,
		})
	}
	return l
}

func (n *nsightReader) digest(ctx context.Context, _ reading) (string, error) {
	res, err := nsight.Read(ctx, n.path, nsight.Options{})
	if err != nil {
		return "", err
	}
	return res.Digest, nil
}

// memory counts what stays until the end; blocks in flight are small.
func (*nsightReader) memory(o *Options, size int64) int64 {
	return int64(o.Workers+2)*8<<20 + max(0, size)/2
}
