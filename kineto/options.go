package kineto

import (
	"runtime"

	"tracelake/internal/aside"
	"tracelake/internal/inflate"
	"tracelake/schema"
)

// Options says how to read a trace. The zero value is usable.
type Options struct {
	Workers   int   // decoding goroutines; 0 means one per processor
	ChunkSize int   // bytes of text per chunk; 0 means DefaultChunkSize
	RowGroup  int   // rows per row group; 0 means DefaultRowGroup
	BaseNS    int64 // base to assume until the header says otherwise
	BaseKnown bool  // BaseNS is what the header says in the end
	SkipTo    int   // event array that counts, from 0, where a trace has several

	// RowGroups receives the rows of the tables that are written while the
	// file is read. The vectors belong to the receiver until it calls done. nil
	// drops the rows.
	RowGroups func(t *schema.Table, rows int, cols []schema.Vector, done func()) error
	// Wanted says for which of these tables rows are put together; the others
	// are only counted. nil means all.
	Wanted func(table string) bool
	// Gate, where set, holds one token per goroutine that may decode at once,
	// over all traces that are read with it.
	Gate chan struct{}
	// Share, where set, says how many of these goroutines are for this trace,
	// while others are read.
	Share func() int
	// Spill, where set, takes rows that are kept until the end of the trace and do
	// not fit into SpillAfter bytes per table, which is DefaultSpillAfter where 0.
	// It is read as long as the Result is, and not closed.
	Spill      *aside.File
	SpillAfter int
	// SizeHint is the size of the stored form in bytes, 0 where unknown. It
	// keeps the buffers of small files small.
	SizeHint int64
}

func (o *Options) fill() {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.ChunkSize <= 0 {
		o.ChunkSize = DefaultChunkSize
	}
	if o.RowGroup <= 0 {
		o.RowGroup = DefaultRowGroup
	}
	if o.SpillAfter <= 0 {
		o.SpillAfter = DefaultSpillAfter
	}
}

// wants reports whether somebody takes the rows of a table that is written
// while the file is read.
func (o *Options) wants(tab tableID) bool {
	return o.RowGroups != nil && (o.Wanted == nil || o.Wanted(specs[tab].table.Name))
}

// gzip says how gzip is decompressed: by as many goroutines as decode, under the
// same gate, and by no more of them than there are processors where that takes
// more work than to do it in order.
func (o *Options) gzip() inflate.Options {
	b := inflate.Options{Workers: o.Workers, Share: func() int {
		n := min(o.Workers, runtime.GOMAXPROCS(0))
		if o.Share != nil {
			n = min(n, o.Share())
		}
		return n
	}}
	if o.Gate != nil {
		b.Run = func(work func()) {
			o.Gate <- struct{}{}
			defer func() { <-o.Gate }()
			work()
		}
	}
	return b
}

// Result is what a trace holds besides the rows that RowGroups received.
// Times in the retained tables lack BaseNS.
type Result struct {
	Header      Header
	Array       bool // the trace is a bare array of events
	BaseNS      int64
	Diags       *schema.Diagnostics
	GPU         *Retained
	Launches    *Retained
	Ranges      *Retained
	Events      int64 // members of the event array
	Kinds       map[Kind]int64
	Rows        map[string]int64 // rows per table name, cpu_events and the like
	TextBytes   int64
	Digest      string // of the text
	Fine        bool   // recorded times are finer than a microsecond
	First, Last int64  // earliest start and latest end without the base; schema.Null where there is none
	Absolute    bool   // recorded times count from the Unix epoch, without any base
	ZeroLost    bool   // events at time 0 have lost their time
}

// Kind is a phase and category of events.
type Kind struct{ Phase, Category string }

// RestartError says that the trace must be read again with other options:
// something behind the events changes how they are read.
type RestartError struct {
	BaseNS    int64
	BaseKnown bool
	SkipTo    int
}

func (e *RestartError) Error() string { return "the trace has to be read again" }
