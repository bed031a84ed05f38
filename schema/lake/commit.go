package lake

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tracelake/schema"
)

const (
	commitsDir    = "commits"
	commitSuffix  = ".json"
	commitVersion = 1
)

// Source is the file that a trace came from.
type Source struct {
	Path    string `json:"path"`     // absolute, or the name of a stream
	Bytes   int64  `json:"bytes"`    // size as stored; -1 where unknown
	MTimeNS int64  `json:"mtime_ns"` // since the Unix epoch; 0 where unknown
}

// SourceOf describes a file of the file system.
func SourceOf(path string) (Source, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Source{}, err
	}
	st, err := os.Stat(abs)
	if err != nil {
		return Source{}, err
	}
	return Source{Path: schema.ValidText(abs), Bytes: st.Size(), MTimeNS: st.ModTime().UnixNano()}, nil
}

// Outcomes of an input, as in traces.outcome.
const (
	OutcomeOK       = "ok"
	OutcomeRepaired = "repaired"
	OutcomePartial  = "partial"
	OutcomeRejected = "rejected"
)

// Record is what the importer knows of a trace when all rows are written.
type Record struct {
	TraceID       string           `json:"trace_id"`
	ContentDigest string           `json:"content_digest"` // of the text after decompression
	Source        Source           `json:"source"`
	Options       string           `json:"options"` // everything asked for that changes the rows
	Run           string           `json:"run"`
	Rank          *int64           `json:"rank"` // nil where nothing tells it
	WorldSize     *int64           `json:"world_size"`
	Outcome       string           `json:"outcome"`
	Reason        string           `json:"outcome_reason,omitempty"`
	DuplicateOf   string           `json:"duplicate_of,omitempty"` // trace that holds the rows, where this one has none
	Diagnostics   map[string]int64 `json:"diagnostics"`            // occurrences by code
	Job           *Job             `json:"job,omitempty"`          // of collect, where the trace comes from one
	Ext           string           `json:"-"`                      // extension of the parts where it is not .parquet
	Rows          map[string]int64 `json:"-"`                      // rows by table; becomes File.Rows
}

// PathRank returns the rank that stands in the paths of the trace.
func (r *Record) PathRank() int64 {
	if r.Rank == nil {
		return UnknownRank
	}
	return *r.Rank
}

// Job names the output of a job of collect and one run of it.
type Job struct {
	Dir     string `json:"dir"` // absolute
	Attempt string `json:"attempt"`
}

// File is a part of a committed trace.
type File struct {
	Table string `json:"table"`
	Path  string `json:"path"` // within the lake, separated by slashes
	Rows  int64  `json:"rows"`
	Bytes int64  `json:"bytes"` // of the whole file
	// Shared files hold rows of other traces, too: Compact merged them.
	Shared   bool  `json:"shared,omitempty"`
	FileRows int64 `json:"file_rows,omitempty"` // of all traces of a shared file; 0 where nobody counted
}

// Commit is the content of _tracelake/commits/<trace_id>.json: it says that
// the trace is in the lake and which files hold it.
type Commit struct {
	Version int `json:"commit_version"`
	Record
	SchemaVersion int    `json:"schema_version"`
	Writer        string `json:"writer"`
	Files         []File `json:"files"` // in the order of the data dictionary
}

var traceIDPattern = regexp.MustCompile(`^[0-9a-f]{16}$`)

// check makes sure that a record cannot lead out of the lake.
func (r *Record) check() error {
	switch {
	case !traceIDPattern.MatchString(r.TraceID):
		return fmt.Errorf("lake: trace ID %q is not 16 hexadecimal digits", r.TraceID)
	case !ValidRun(r.Run):
		return fmt.Errorf("lake: run %q is not a slug", r.Run)
	case r.DuplicateOf != "" && !traceIDPattern.MatchString(r.DuplicateOf):
		return fmt.Errorf("lake: duplicate of %q, which is no trace ID", r.DuplicateOf)
	case r.Rank != nil && *r.Rank < 0:
		return fmt.Errorf("lake: rank %d is negative", *r.Rank)
	}
	return nil
}

// commitPath returns the path of a commit within the lake.
func commitPath(traceID string) string {
	return MetaDir + "/" + commitsDir + "/" + traceID + commitSuffix
}

// readCommit returns fs.ErrNotExist where the trace is not in the lake.
func (l *Lake) readCommit(traceID string) (Commit, error) {
	data, err := l.at.read(commitPath(traceID))
	if err != nil {
		return Commit{}, err
	}
	return l.parseCommit(traceID, data)
}

// readCommitVersion is readCommit for who wants to swap it. The version is known
// also where the content cannot be read.
func (l *Lake) readCommitVersion(traceID string) (c Commit, version string, err error) {
	data, version, err := l.at.readVersion(commitPath(traceID))
	if err == nil {
		c, err = l.parseCommit(traceID, data)
	}
	return c, version, err
}

// parseCommit returns a *DamagedError, and nothing of what it read, where that is
// no commit of the trace.
func (l *Lake) parseCommit(traceID string, data []byte) (Commit, error) {
	var c Commit
	err := json.Unmarshal(data, &c)
	if err == nil && c.TraceID != traceID {
		err = fmt.Errorf("states trace %q", c.TraceID)
	}
	if err == nil {
		err = c.check()
	}
	for _, f := range c.Files {
		if err == nil && !inTables(f.Path) {
			err = fmt.Errorf("file %q is outside the tables", f.Path)
		}
	}
	if err != nil {
		return Commit{}, &DamagedError{l.at.path(commitPath(traceID)), err}
	}
	return c, nil
}

// inTables reports whether a path leads to a file of a table. One that is not
// written in the shortest way could lead elsewhere in the end.
func inTables(p string) bool {
	return filepath.IsLocal(filepath.FromSlash(p)) && path.Clean(p) == p && p != "." && !strings.HasPrefix(p, MetaDir)
}

// isPart reports whether a path is that of a part, whatever names it.
func isPart(p string) bool {
	return inTables(p) && partPattern.MatchString(path.Base(p)) && !slices.ContainsFunc(strings.Split(p, "/"), hidden)
}

// intact reports whether every file of a commit is in place, in full size.
func (l *Lake) intact(c *Commit) bool {
	for _, f := range c.Files {
		size, err := l.at.size(f.Path)
		if err != nil || size != f.Bytes {
			return false
		}
	}
	return true
}
