package convert

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tracelake/schema"
	"tracelake/schema/lake"
)

// rows is a table that a reader kept in memory, in source order. Integers,
// bits of float64 and numbers of strings stand in columns with schema.Null
// where a row has no value.
type rows interface {
	Len() int
	Has(col string) bool
	Values(col string) []int64
	ValuesAt(col int) []int64
	Name(id int64) string
	NumNames() int
	Names() []string
}

// loaded is what a reader made of an input, whatever its format. Times in the
// tables lack base.
type loaded struct {
	source                string // as in traces.source
	header                header
	base                  int64 // added to every recorded time
	gpu, launches, ranges rows
	diags                 *schema.Diagnostics
	events                int64
	kinds                 []KindCount
	durations             int64 // duration events of any kind
	rows                  map[string]int64
	textBytes             int64
	sha256                string // of the content
	fine                  bool   // recorded times are finer than a microsecond
	first, last           int64  // without the base; schema.Null where there is none
	absolute              bool   // recorded times count from the Unix epoch, without any base
	zeroLost              bool   // events at time 0 have lost their time
	byProcess             bool   // GPU work names its process
}

// header is what inputs say about themselves.
type header struct {
	Base                              schema.Opt[int64]
	Host, TraceID                     schema.Opt[string]
	Rank, WorldSize                   schema.Opt[int64]
	Backend, ProcessGroups            schema.Opt[string]
	VLLMVersion, CUPTIVersion         schema.Opt[string]
	CUDARuntime, CUDADriver           schema.Opt[string]
	HIPRuntime, TraceName             schema.Opt[string]
	Devices                           []device
	rest                              string // what has no field, as a JSON object
	baseMissing, baseMissingIsTooLate string
}

// device is a GPU that the header lists.
type device struct {
	Process   int64 // key of the process whose ordinal it is; schema.Null for all
	Ordinal   schema.Opt[int64]
	Name      schema.Opt[string]
	UUID      schema.Opt[string]
	Memory    schema.Opt[int64]
	SMs       schema.Opt[int64]
	Major     schema.Opt[int64]
	Minor     schema.Opt[int64]
	WarpSize  schema.Opt[int64]
	Rest      string
	announced bool // listed even where no event ran on it
}

// reading is how an input is read.
type reading struct {
	workers, chunkSize, rowGroup int
	sink                         func(t *schema.Table, rows int, cols []schema.Vector, done func()) error
	gate                         chan struct{}
	progress                     func(int64)
	size                         int64
}

// reader imports the inputs of one format.
type reader struct {
	source string
	// read imports an input. Again it may be called with another sink, where
	// it asks for that with an errAgain.
	read func(ctx context.Context, path string, o reading, start any) (*loaded, error)
	// start is what read is first called with.
	start func(path string) any
	// digest is loaded.sha256 without importing anything.
	digest func(ctx context.Context, path string) (string, error)
	// estimate guesses the memory that an import takes.
	estimate func(c *importer, size int64) int64
	load     func()
}

// errAgain says that an input has to be read again from the start, because of
// something behind its events.
type errAgain struct{ start any }

func (e *errAgain) Error() string { return "the trace has to be read again" }

// maxRestarts is how often a trace may ask to be read again.
const maxRestarts = 20

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
	return src, eachFile(path, func(p string, info fs.FileInfo) error {
		src.Bytes += info.Size()
		src.MTimeNS = max(src.MTimeNS, info.ModTime().UnixNano())
		return nil
	})
}

// eachFile calls f for the files of an input in order of their names.
func eachFile(path string, f func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(path, func(p string, e fs.DirEntry, err error) error {
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

// storedSum is the SHA-256 of an input as stored.
func storedSum(path string) (string, error) {
	h := sha256.New()
	err := eachFile(path, func(p string, _ fs.FileInfo) error {
		sum, err := fileSum(p, p)
		fmt.Fprintln(h, filepath.Base(p), sum)
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}
