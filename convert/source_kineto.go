package convert

import (
	"context"
	"errors"
	"io"

	"tracelake/internal/inflate"
	"tracelake/kineto"
	"tracelake/schema"
)

// kinetoReader reads a Kineto trace, again where what follows the events
// changes how they are read.
type kinetoReader struct {
	open func(context.Context) (io.ReadCloser, error)
	tail func() int64 // finds the base where the file says it at its end; nil when that is known
	how  kineto.RestartError
}

func (*kinetoReader) source() string { return "kineto" }

func (k *kinetoReader) read(ctx context.Context, o reading) (*loaded, error) {
	if k.tail != nil {
		k.how.BaseNS, k.tail = k.tail(), nil
	}
	f, err := k.open(ctx)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var src io.Reader = f
	if o.progress != nil {
		src = &countingReader{r: f, f: o.progress}
	}
	res, err := kineto.Read(ctx, src, kineto.Options{
		Workers: o.o.Workers, ChunkSize: o.o.ChunkSize, RowGroup: o.o.RowGroup, BaseNS: k.how.BaseNS, BaseKnown: k.how.BaseKnown, SkipTo: k.how.SkipTo,
		RowGroups: o.sink, Wanted: o.o.wanted, Gate: o.gate, Share: o.share, SizeHint: o.size, Spill: o.aside, SpillAfter: o.o.spillAfter(),
	})
	var again *kineto.RestartError
	if errors.As(err, &again) {
		k.how = *again
		return nil, errAgain{}
	}
	if err != nil {
		return nil, err
	}
	return fromKineto(res), nil
}

func fromKineto(res *kineto.Result) *loaded {
	h := &res.Header
	l := &loaded{
		source: "kineto", base: res.BaseNS, gpu: res.GPU, launches: res.Launches, ranges: res.Ranges,
		diags: res.Diags, events: res.Events, rows: res.Rows, textBytes: res.TextBytes, digest: res.Digest,
		fine: res.Fine, first: res.First, last: res.Last, absolute: res.Absolute, zeroLost: res.ZeroLost,
		header: header{
			Base: h.BaseNS, Host: h.Host, TraceID: h.TraceID, Rank: h.Rank, WorldSize: h.WorldSize, Backend: h.Backend,
			ProcessGroups: h.ProcessGroups, VLLMVersion: h.VLLMVersion, CUPTIVersion: h.CUPTIVersion,
			CUDARuntime: h.CUDARuntime, CUDADriver: h.CUDADriver, HIPRuntime: h.HIPRuntime, TraceName: h.TraceName,
			Rest: h.RestJSON(),
		},
	}
	for k, n := range res.Kinds {
		l.kinds = append(l.kinds, KindCount{k.Phase, k.Category, n})
		if k.Phase == "X" || k.Phase == "B" {
			l.durations += n
		}
	}
	for _, d := range h.Devices {
		if d.Ordinal.OK {
			l.header.Devices = append(l.header.Devices, device{
				deviceKey: deviceKey{schema.Null, d.Ordinal.V}, Name: d.Name, UUID: d.UUID, Memory: d.Memory,
				SMs: d.SMs, Major: d.Major, Minor: d.Minor, WarpSize: d.WarpSize, Rest: d.Rest,
			})
		}
	}
	return l
}

func (k *kinetoReader) digest(ctx context.Context, o reading) (string, error) {
	f, err := k.open(ctx)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return kineto.Digest(f, kineto.Options{Workers: o.o.Workers, Gate: o.gate, Share: o.share})
}

// memory counts chunks in flight, their columns, and what is decompressed ahead.
func (*kinetoReader) memory(o *Options, size int64) int64 {
	chunks := int64(o.Workers+3)*int64(o.ChunkSize)*3 + inflate.Memory(o.Workers)
	if size < 0 {
		return chunks
	}
	return min(chunks, 4<<20+size*40) // compressed text grows about twenty times
}

// countingReader tells how much of a file was read.
type countingReader struct {
	r io.Reader
	n int64
	f func(int64)
}

func (c *countingReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	c.f(c.n)
	return n, err
}
