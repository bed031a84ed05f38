package convert

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sort"
	"strings"

	"tracelake/analyze/execlog"
	"tracelake/analyze/link"
	"tracelake/internal/digest"
	"tracelake/kineto"
	"tracelake/schema"
	"tracelake/schema/columnar"
)

// Options say how inputs are converted. Output is required.
type Options struct {
	Output      string // directory of the dataset
	Run         string // run that traces are filed under; "" for the name of their directory
	Workers     int    // goroutines that compute; 0 for one per processor
	MaxMemory   int64  // bytes that files read at once may take together; 0 for DefaultMaxMemory
	Force       bool   // import again what is in the dataset
	Strict      bool   // reject whatever is not ok
	Format      columnar.Format
	Compression columnar.Compression
	RowGroup    int // rows; 0 for kineto.DefaultRowGroup
	ChunkSize   int // bytes; 0 for kineto.DefaultChunkSize
	Detail      string
	Marks       link.Marks
	Patterns    []string // as given, for the key of options
	Tables      []string // tables to write; none for all
	Writer      string   // name and version of the program
	Progress    func(path string, textBytes int64)
	DeviceUUIDs func(path string) map[int64]string
	UUIDsByPID  map[int64]map[int64]string
	Execution   *execlog.Log // tells the GPUs of processes instead of UUIDsByPID; may be nil
	// TargetFileSize is the size in bytes to which the files of the runs are
	// merged at the end; 0 leaves them as they are.
	TargetFileSize int64

	// MaxCopy is how many bytes an input of an object store may have that must be
	// copied to be read; 0 for half of the free disk.
	MaxCopy int64

	// Member says that this process is one of many that fill the dataset at the
	// same time. It reads nothing of what others wrote, so that a trace costs
	// the same whatever the dataset holds, and leaves what concerns the dataset
	// as a whole to List.
	Member bool

	Library bool // read SQLite exports with the SQLite library alone

	logKey string // executionKey of Execution
}

// DefaultMaxMemory is the memory that files read at once may take together.
const DefaultMaxMemory = 1 << 30

// always are the tables that every import writes: without them nobody can tell
// what became of an input.
var always = []string{schema.TableTraces.Name, schema.TableDiagnostics.Name}

func (o *Options) fill() error {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.MaxMemory <= 0 {
		o.MaxMemory = DefaultMaxMemory
	}
	if o.RowGroup <= 0 {
		o.RowGroup = kineto.DefaultRowGroup
	}
	if o.ChunkSize <= 0 {
		o.ChunkSize = kineto.DefaultChunkSize
	}
	o.logKey = executionKey(o.Execution)
	if o.Detail == "" {
		o.Detail = "launch"
	}
	if o.Detail != "launch" && o.Detail != "kernel" {
		return fmt.Errorf("detail %q: want launch or kernel", o.Detail)
	}
	for _, t := range o.Tables {
		if schema.TableByName(t) == nil && !schema.IsUserTable(t) {
			return fmt.Errorf("no table %q: want one of %s, or x_NAME of a tracer of your own", t, strings.Join(tableNames(), ", "))
		}
	}
	return nil
}

// spillAfter is how many bytes of packed rows of a table stay in memory before
// they go to a file.
func (o *Options) spillAfter() int {
	return int(max(1, min(kineto.DefaultSpillAfter, o.MaxMemory/128)))
}

func tableNames() (out []string) {
	for _, t := range schema.Tables {
		out = append(out, t.Name)
	}
	return out
}

func (o *Options) wanted(table string) bool {
	if len(o.Tables) == 0 {
		return true
	}
	for _, t := range append(always, o.Tables...) {
		if t == table {
			return true
		}
	}
	return false
}

// key describes the options that change what is written. Two imports of one
// file with equal keys and runs write the same bytes.
func (o *Options) key() string {
	tables := append([]string(nil), o.Tables...)
	sort.Strings(tables)
	k := fmt.Sprintf("schema=%d format=%s detail=%s compression=%s row_group=%d chunk=%d strict=%v", schema.Version, o.Format, o.Detail, o.Compression, o.RowGroup, o.ChunkSize, o.Strict)
	if len(tables) > 0 {
		k += " tables=" + strings.Join(tables, ",")
	}
	for _, p := range o.Patterns {
		k += fmt.Sprintf(" pattern=%q", p)
	}
	return k
}

// uuidKey describes what names the GPUs of an input from outside, "" where nothing
// does.
func (o *Options) uuidKey(path string) string {
	var uuids map[int64]string
	if o.DeviceUUIDs != nil {
		uuids = o.DeviceUUIDs(path)
	}
	if len(uuids)+len(o.UUIDsByPID) == 0 {
		return o.logKey
	}
	h := digest.New()
	tables := func(pid int64, uuids map[int64]string) {
		for _, ordinal := range slices.Sorted(maps.Keys(uuids)) {
			fmt.Fprintf(h, "%d %d %q\n", pid, ordinal, uuids[ordinal])
		}
	}
	tables(schema.Null, uuids)
	for _, pid := range slices.Sorted(maps.Keys(o.UUIDsByPID)) {
		tables(pid, o.UUIDsByPID[pid])
	}
	return " uuids=" + digest.Text(h)[:schema.TraceIDLen] + o.logKey
}

// executionKey describes what an execution log says.
func executionKey(l *execlog.Log) string {
	if l == nil {
		return ""
	}
	h := digest.New()
	for i := range l.Workers {
		w := &l.Workers[i]
		fmt.Fprintf(h, "%q %q %d %v %q %v %v %v %v\n", w.Epoch, w.Host, w.PID, w.Ordinal, w.UUID.V, w.UUID.OK, w.StartedNS, w.LastSeenNS, w.SaidGoodbye)
	}
	return " log=" + digest.Text(h)[:schema.TraceIDLen]
}

// DefaultChunkSize is the text that one worker decodes at a time, in bytes.
const DefaultChunkSize = kineto.DefaultChunkSize
