package execlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// Worker is one lifetime of a worker process.
type Worker struct {
	Epoch       string
	Host        string
	PID         int64
	Ordinal     schema.Opt[int64]
	UUID        schema.Opt[string]
	StartedNS   schema.Opt[int64] // wall clock
	LastSeenNS  schema.Opt[int64] // wall clock
	SaidGoodbye bool
}

// covers reports whether the process was alive across a window.
func (w *Worker) covers(start, end int64) bool {
	if w.StartedNS.OK && w.StartedNS.V > start {
		return false
	}
	if !w.LastSeenNS.OK {
		return !w.SaidGoodbye
	}
	last := w.LastSeenNS.V
	if !w.SaidGoodbye && last < 1<<62 {
		last += slack
	}
	return last >= end
}

// Log holds the workers of a log.
type Log struct {
	Dir     string
	Workers []Worker
	Notes   []string // what could not be read, the first of each kind
	Bad     int      // lines and files that could not be read
}

var (
	epochName   = regexp.MustCompile(`^worker-([0-9]{1,18})-([0-9]+)$`)
	segmentName = regexp.MustCompile(`^([0-9]{6})\.jsonl(\.part)?$`)
)

// Read reads the workers of a log. A part of it that cannot be read is noted;
// the error is about the directory itself.
func Read(dir string) (*Log, error) {
	st, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	if !st.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	hosts, err := subdirectories(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{Dir: dir}
	for _, host := range hosts {
		epochs, err := subdirectories(filepath.Join(dir, host))
		if err != nil {
			l.note("%v", err)
			continue
		}
		for _, name := range epochs {
			m := epochName.FindStringSubmatch(name)
			if m == nil {
				continue // an engine, or no epoch at all
			}
			pid, _ := strconv.ParseInt(m[1], 10, 64) // 18 digits fit
			e := &epoch{l: l, dir: filepath.Join(dir, host, name), w: Worker{Epoch: name, Host: host, PID: pid}}
			e.read()
			l.Workers = append(l.Workers, e.w)
		}
	}
	return l, nil
}

func (l *Log) note(format string, a ...any) {
	l.Bad++
	if len(l.Notes) < maxNotes {
		l.Notes = append(l.Notes, fmt.Sprintf(format, a...))
	}
}

// subdirectories lists directories by name, through links.
func subdirectories(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		if st, err := os.Stat(filepath.Join(dir, e.Name())); err == nil && st.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// epoch reads one lifetime.
type epoch struct {
	l     *Log
	dir   string
	w     Worker
	seen  ranges // sequence numbers; the first delivery of one counts
	hello map[string]json.RawMessage
}

func (e *epoch) read() {
	// The writer may seal, that is rename, a segment between listing and
	// opening: then it is read under its new name.
	for range 3 {
		if !e.segments() {
			break
		}
	}
	if e.hello != nil {
		if host := text(e.hello["host"]); host.OK {
			e.w.Host = host.V
		}
		e.w.Ordinal, e.w.UUID = integer(e.hello["cuda_ordinal"]), text(e.hello["device_uuid"])
		e.w.StartedNS = integer(object(e.hello["clock"])["wall_ns"])
	}
	path := filepath.Join(e.dir, "status.json")
	if b, err := regular.ReadFile(path); err == nil {
		status := object(b)
		if status == nil {
			e.l.note("%s: no JSON object", path)
		}
		e.alive(integer(status["wall_ns"]))
	} else if !errors.Is(err, fs.ErrNotExist) {
		e.l.note("%v", err)
	}
}

// alive notes a time at which the process lived.
func (e *epoch) alive(at schema.Opt[int64]) {
	if at.OK && (!e.w.LastSeenNS.OK || at.V > e.w.LastSeenNS.V) {
		e.w.LastSeenNS = at
	}
}

// segments reads the segments in their order, a sealed one before an open one
// of the same number, and reports whether one vanished.
func (e *epoch) segments() (again bool) {
	entries, err := os.ReadDir(e.dir)
	if err != nil {
		e.l.note("%v", err)
		return false
	}
	var names []string
	for _, entry := range entries {
		st, err := os.Stat(filepath.Join(e.dir, entry.Name()))
		if segmentName.MatchString(entry.Name()) && err == nil && st.Mode().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names) // NNNNNN.jsonl stands before NNNNNN.jsonl.part
	for _, name := range names {
		f, err := regular.Open(filepath.Join(e.dir, name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(name, ".part"):
			again = true
			continue
		case err != nil:
			e.l.note("%v", err)
			continue
		}
		e.segment(f, f.Name())
		f.Close()
	}
	return again
}

// segment reads the complete lines of a segment. The last line of an open one
// may be half written.
func (e *epoch) segment(f io.Reader, path string) {
	in := bufio.NewReaderSize(f, 256<<10)
	for n := 1; ; n++ {
		line, err := readLine(in)
		switch {
		case errors.Is(err, errLong):
			e.l.note("%s:%d: the line is longer than %d MiB", path, n, maxLine>>20)
			continue
		case errors.Is(err, io.EOF):
			if len(line) > 0 && !strings.HasSuffix(path, ".part") {
				e.l.note("%s:%d: the file ends inside the line", path, n)
			}
			return
		case err != nil:
			e.l.note("%v", err)
			return
		}
		if len(strings.TrimSpace(string(line))) == 0 {
			continue
		}
		if problem := e.record(line); problem != "" {
			e.l.note("%s:%d: %s", path, n, problem)
		}
	}
}

// record takes one record and says what is wrong with it.
func (e *epoch) record(line []byte) string {
	r := object(line)
	if r == nil {
		return "no JSON object"
	}
	if f := text(r["format"]); f.V != format {
		return fmt.Sprintf("format %.60s is not %s", r["format"], format)
	}
	if text(r["epoch"]).V != e.w.Epoch {
		return fmt.Sprintf("epoch %.100s is not this directory's", r["epoch"])
	}
	seq, kind := integer(r["seq"]), text(r["kind"])
	if !seq.OK || seq.V < 0 {
		return "seq is no integer of 0 or more"
	}
	if !kind.OK {
		return "kind is no text"
	}
	if !e.seen.add(seq.V) {
		return ""
	}
	switch kind.V {
	case "hello":
		e.hello = r
		e.alive(integer(object(r["clock"])["wall_ns"]))
	case "goodbye":
		e.w.SaidGoodbye = true
		e.alive(integer(r["wall_ns"]))
	case "heartbeat":
		e.alive(integer(r["wall_ns"]))
	}
	return ""
}

var errLong = errors.New("long line")

// readLine returns a line without its end. At the end of the file it returns
// what stands there and io.EOF.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return line, err
		case long:
			return nil, errLong
		default:
			return line[:len(line)-1], nil
		}
	}
}
