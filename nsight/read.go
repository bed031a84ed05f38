package nsight

import (
	"context"
	"hash"
	"runtime"
	"strings"

	"tracelake/internal/digest"
	"tracelake/schema"
)

// Options says how to read an export. The zero value is usable.
type Options struct {
	Workers  int // goroutines that decode; 0 means one per processor
	RowGroup int // rows per row group; 0 means DefaultRowGroup

	// RowGroups receives the rows of the tables that are written while the
	// export is read. The vectors belong to the receiver until it calls done.
	// nil drops the rows.
	RowGroups func(t *schema.Table, rows int, cols []schema.Vector, done func()) error
	// Gate, where set, holds one token per goroutine that may decode at once,
	// over all inputs that are read with it.
	Gate chan struct{}
	// Progress is told how many bytes have been read.
	Progress func(bytes int64)
	// Library reads SQLite with the library alone.
	Library bool
}

// Result is what a report holds besides the rows that RowGroups received.
// Times in the retained tables lack BaseNS.
type Result struct {
	Header   Header
	Format   string // sqlite, parquetdir, arrowdir, arrows or jsonlines
	BaseNS   int64
	Absolute bool // recorded times count from the Unix epoch already
	Diags    *schema.Diagnostics
	GPU      *Rows
	Launches *Rows
	Ranges   *Rows
	Devices  []Device
	Events   int64            // rows imported
	Kinds    map[string]int64 // rows by category
	Rows     map[string]int64 // rows by table of the dataset
	Bytes    int64            // size of the export
	Digest   string           // of all that is imported, whatever the format
	// First and Last are the earliest start and the latest end without the
	// base; schema.Null where there is none.
	First, Last int64
}

// Read reads one export. It returns a *schema.RejectedError for what is none,
// or is damaged.
func Read(ctx context.Context, path string, o Options) (*Result, error) {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.RowGroup <= 0 {
		o.RowGroup = DefaultRowGroup
	}
	var src tables
	err := guarded(path, func() (err error) {
		src, err = open(ctx, path, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	defer src.close() //nolint:errcheck // nothing was written
	r := newReader(src, o)
	if d, ok := src.(*directory); ok && d.cut != "" {
		r.note(schema.TextCut, 1, d.cut)
	}
	if err := r.read(ctx); err != nil {
		_ = r.tasks.wait()
		return nil, err
	}
	return r.result(), nil
}

// reader imports one export.
type reader struct {
	o      Options
	src    tables
	have   []string
	digest hash.Hash
	names  *names
	tasks  tasks
	refs   idSet           // strings that rows refer to
	byID   stringTable     // … and their numbers
	odd    int64           // values of a wrong type
	times  oddTimes        // rows by what is wrong with their times
	used   map[string]bool // tables of the export that were read
	events int64

	first, last int64
	timed       bool
	seen        map[int64]bool // process keys of imported rows
	domains     map[scoped]label
	categories  map[scoped]label

	res Result
}

func newReader(src tables, o Options) *reader {
	r := &reader{
		o: o, src: src, have: src.names(), digest: digest.New(), names: newNames(),
		used: map[string]bool{}, seen: map[int64]bool{},
	}
	r.tasks = tasks{limit: make(chan struct{}, o.Workers+1), gate: o.Gate}
	r.res = Result{
		Format: src.format(), Diags: &schema.Diagnostics{}, Kinds: map[string]int64{}, Rows: map[string]int64{},
		First: schema.Null, Last: schema.Null, Bytes: src.bytes(),
	}
	return r
}

// table returns the name under which the export has a table, "" for none.
func (r *reader) table(name string) string {
	n := find(r.have, name)
	if n != "" && !r.used[n] {
		r.used[n] = true
		if n != name {
			r.note(schema.TableVariant, 1, n+" was read as "+name)
		}
	}
	return n
}

func (r *reader) note(code schema.Code, n int64, message string) {
	r.res.Diags.Add(code, schema.Null, schema.Null, n, message)
}

// read imports the tables in a fixed order, which numbers their rows.
func (r *reader) read(ctx context.Context) error {
	if err := r.gate(); err != nil {
		return err
	}
	if err := r.header(ctx); err != nil {
		return err
	}
	gpu, err := r.readGPU(ctx)
	if err != nil {
		return err
	}
	calls, err := r.collect(ctx, tableRuntime, append(ints("start", "end", "eventClass", "globalTid", "correlationId", "returnValue"), want{"nameId", integer}))
	if err != nil {
		return err
	}
	nvtx, err := r.readNVTX(ctx)
	if err != nil {
		return err
	}
	if err := r.findRefs(ctx, gpu, calls, nvtx); err != nil {
		return err
	}
	if err := r.readStrings(ctx); err != nil {
		return err
	}
	r.gpuRows(gpu)
	r.launchRows(calls)
	r.rangeRows(nvtx)
	if err := r.streams(ctx, nvtx); err != nil {
		return err
	}
	if err := r.devices(ctx, gpu); err != nil {
		return err
	}
	return r.closing(ctx, gpu, calls)
}

// gate refuses what is no export of Nsight Systems.
func (r *reader) gate() error {
	has := func(list ...string) bool {
		for _, t := range list {
			if find(r.have, t) != "" {
				return true
			}
		}
		return false
	}
	if !has("StringIds") || !has("META_DATA_EXPORT", "EXPORT_META_DATA", "TARGET_INFO_SESSION_START_TIME", tableKernel, tableRuntime, tableNVTX, "TARGET_INFO_GPU") {
		return reject("no export of Nsight Systems: without the tables StringIds and META_DATA_EXPORT, TARGET_INFO_SESSION_START_TIME or another that only an export has")
	}
	return nil
}

// readStrings reads the strings that rows refer to, and no others.
func (r *reader) readStrings(ctx context.Context) error {
	name := r.table("StringIds")
	wants := []want{{"id", integer}, {"value", text}}
	err := r.src.scan(ctx, name, wants, &r.refs, func(b *batch) error {
		if b.cols[0] == nil || b.cols[1] == nil {
			return reject("table %s has no column id or value", name)
		}
		for i, id := range b.cols[0][:b.n] {
			if id == schema.Null || b.cols[1][i] == schema.Null || !r.refs.has(id) {
				continue
			}
			r.byID.set(id, r.names.put(b.texts.list[b.cols[1][i]]))
		}
		if r.names.bytes > maxTextBytes {
			return reject("the report holds more than %d MiB of distinct strings", maxTextBytes>>20)
		}
		return nil
	})
	if err != nil {
		return err
	}
	missing := int64(0)
	for _, id := range r.refs.all() {
		n := r.byID.get(id)
		if n == schema.Null {
			missing++
			continue
		}
		r.hash("string", uint64(id))
		r.hash(r.names.list[n], 0)
	}
	if missing > 0 {
		r.note(schema.UnknownString, missing, "string IDs that rows refer to and StringIds does not hold")
	}
	return nil
}

// string resolves the ID of a string.
func (r *reader) string(id int64) int64 { return r.byID.get(id) }

func (r *reader) refer(col *stored) {
	buf := make([]int64, blockRows)
	for i := range col.segs {
		s := &col.segs[i]
		if s.none {
			continue
		}
		s.fill(buf)
		last := schema.Null
		for _, v := range buf[:s.rows] {
			if v != schema.Null && v != last {
				r.refs.add(v)
				last = v
			}
		}
	}
}

// oddTimes counts rows by what is wrong with their times.
type oddTimes struct{ bad, missing, negative int64 }

// moment widens the window of the report by a start, and reports whether that is
// a time.
func (r *reader) moment(start int64) bool {
	if _, ok := addBase(start, r.res.BaseNS); !ok {
		r.times.bad++
		return false
	}
	r.span(start, start)
	return true
}

// interval does the same for a start and an end. An end that is missing, or lies
// before the start, says nothing of the window.
func (r *reader) interval(start, end int64) bool {
	if !r.moment(start) {
		return false
	}
	switch d := duration(start, end); {
	case d == schema.Null:
		r.times.missing++
	case d < 0:
		r.times.negative++
	default:
		if _, ok := addBase(end, r.res.BaseNS); !ok {
			r.times.bad++
			return true
		}
		r.span(start, end)
	}
	return true
}

// intervals looks at the times of a table that stays in memory.
func (r *reader) intervals(t *read) {
	start, end := t.col("start"), t.col("end")
	from, to := make([]int64, blockRows), make([]int64, blockRows)
	for i := range start.segs {
		start.segs[i].fill(from)
		end.segs[i].fill(to)
		for k := range start.segs[i].rows {
			r.interval(from[k], to[k])
		}
	}
}

func (r *reader) span(lo, hi int64) {
	if !r.timed {
		r.first, r.last, r.timed = lo, hi, true
	}
	r.first, r.last = min(r.first, lo), max(r.last, hi)
}

func (r *reader) result() *Result {
	res := &r.res
	res.Events = r.events
	res.Digest = digest.Text(r.digest)
	if r.timed {
		res.First, res.Last = r.first, r.last
	}
	return res
}

// shorten cuts a message that the profiler wrote to one line of bounded length.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}
