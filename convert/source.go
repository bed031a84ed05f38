package convert

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tracelake/internal/aside"
	"tracelake/internal/digest"
	"tracelake/internal/regular"
	"tracelake/nsight"
	"tracelake/schema"
	"tracelake/schema/lake"
)

// reader imports one input. There is one per format.
type reader interface {
	// source is the value of traces.source.
	source() string
	// read imports the input. After errAgain it must be called again, with a
	// sink that has no rows.
	read(ctx context.Context, o reading) (*loaded, error)
	// digest is loaded.digest, without importing anything.
	digest(ctx context.Context, o reading) (string, error)
	// memory guesses what reading takes, in bytes.
	memory(o *Options, size int64) int64
}

// readerOf returns the reader of an input, told by its content.
func readerOf(path string) reader { return readerFor(path, nsight.Sniff(path)) }

func readerFor(path string, kind nsight.Kind) reader {
	switch kind {
	case nsight.None:
		open := func(context.Context) (io.ReadCloser, error) { return regular.Open(path) }
		return &kinetoReader{open: open, tail: func() int64 { return tailBase(path) }}
	default:
		return &nsightReader{path: path, kind: kind}
	}
}

// reading says how an input is read.
type reading struct {
	o        *Options
	sink     func(t *schema.Table, rows int, cols []schema.Vector, done func()) error
	gate     chan struct{}
	share    func() int // of the gate, for this input; nil for all of it
	progress func(bytes int64)
	size     int64
	aside    *aside.File // for rows that do not fit into memory; nil keeps them there
}

// errAgain says that an input has to be read again from the start, because of
// something behind its events.
type errAgain struct{}

func (errAgain) Error() string { return "the trace has to be read again" }

// maxRestarts is how often a trace may ask to be read again.
const maxRestarts = 20

// rows is a table that a reader kept in memory, in source order. Integers,
// bits of float64 and numbers of strings stand in columns, with schema.Null
// where a row has no value.
type rows interface {
	Len() int
	Has(col string) bool
	Values(col string) []int64
	ValuesInto(buf []int64, col int) []int64
	Name(id int64) string
	NumNames() int
	Names() []string
	// Err returns why values are not those that were read.
	Err() error
}

// loaded is what a reader made of an input, whatever its format. Times in the
// tables lack base.
type loaded struct {
	source                string
	header                header
	base                  int64 // added to every recorded time
	gpu, launches, ranges rows
	diags                 *schema.Diagnostics
	events                int64
	kinds                 []KindCount
	durations             int64 // duration events of any kind
	rows                  map[string]int64
	textBytes             int64
	digest                string // of the content
	fine                  bool   // recorded times are finer than a microsecond
	first, last           int64  // without the base; schema.Null where there is none
	absolute              bool   // recorded times count from the Unix epoch, without any base
	zeroLost              bool   // events at time 0 have lost their time
	byProcess             bool   // GPU work names its process, and device ordinals count within it
}

// header is what an input says about itself.
type header struct {
	Base                      schema.Opt[int64]
	Host, TraceID             schema.Opt[string]
	Rank, WorldSize           schema.Opt[int64]
	Backend, ProcessGroups    schema.Opt[string]
	VLLMVersion, CUPTIVersion schema.Opt[string]
	CUDARuntime, CUDADriver   schema.Opt[string]
	HIPRuntime, TraceName     schema.Opt[string]
	Devices                   []device
	Rest                      string // keys without a field, as a JSON object
}

// deviceKey is a device ordinal and the key of the process that it counts in,
// schema.Null where it counts for all.
type deviceKey struct{ process, ordinal int64 }

// device is a GPU that the header lists.
type device struct {
	deviceKey
	Name, UUID             schema.Opt[string]
	Memory                 schema.Opt[int64] // bytes
	SMs                    schema.Opt[int64]
	Major, Minor, WarpSize schema.Opt[int64]
	Rest                   string // as a JSON object
}

// sourceOf describes an input file, or a directory that is one input.
func sourceOf(path string) (lake.Source, error) {
	src, err := lake.SourceOf(path)
	if err != nil {
		return src, err
	}
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return src, err
	}
	src.Bytes = 0
	return src, eachFile(path, func(_ string, info fs.FileInfo) error {
		src.Bytes += info.Size()
		src.MTimeNS = max(src.MTimeNS, info.ModTime().UnixNano())
		return nil
	})
}

// eachFile calls f for the files of an input in order of their names.
func eachFile(path string, f func(path string, info fs.FileInfo) error) error {
	return regular.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		return f(p, info)
	})
}

// storedSum is the digest of an input as stored.
func storedSum(path string) (string, error) {
	if st, err := os.Stat(path); err != nil || !st.IsDir() {
		return fileSum(path)
	}
	h := digest.New()
	err := eachFile(path, func(p string, _ fs.FileInfo) error {
		sum, err := fileSum(p)
		fmt.Fprintln(h, filepath.Base(p), sum)
		return err
	})
	return digest.Text(h), err
}
