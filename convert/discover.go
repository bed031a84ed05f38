package convert

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"tracelake/collected"
	"tracelake/internal/inflate"
	"tracelake/internal/regular"
	"tracelake/internal/store"
	"tracelake/internal/unpack"
	"tracelake/nsight"
	"tracelake/schema/lake"
)

// Input is a file to import.
type Input struct {
	Path    string // as given or found
	Bytes   int64
	Named   bool           // the user named the file itself and not a directory
	Job     *collected.Job // of collect that the input comes from; nil otherwise
	Tables  bool           // the tables of the job and not a trace
	Problem string         // why the input cannot be imported; "" where nothing is known

	remote *remote // where it is in an object store; nil for local files
}

// Stdin is the path that stands for standard input.
const Stdin = "-"

// ErrNoInputs means that nothing that was named is a trace.
var ErrNoInputs = errors.New("no traces found")

// Found is the result of looking for inputs.
type Found struct {
	Inputs    []Input
	Ignored   int // files in directories that do not look like traces
	EmptyJobs int // jobs of collect without a trace or a table: failed, or with other output
}

// Shard returns the inputs of one of n shares. An input is in the same share
// wherever it is looked for, as long as its absolute path is the same. All of a
// job are in one share, which would else take what the others import for what an
// earlier attempt left.
func (f Found) Shard(i, n int) Found {
	out := f
	out.Inputs = nil
	for _, in := range f.Inputs {
		h := fnv.New64a()
		_, _ = io.WriteString(h, in.absolute(in.unit())) // never fails
		if h.Sum64()%uint64(n) == uint64(i) {
			out.Inputs = append(out.Inputs, in)
		}
	}
	return out
}

// absPath is the path of an input from wherever it is looked at.
func (in *Input) absPath() string { return in.absolute(in.Path) }

// absolute makes a path of an input absolute.
func (in *Input) absolute(path string) string {
	if path == Stdin || in.remote != nil {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Discover is DiscoverIn that nothing interrupts.
func Discover(args []string) (Found, error) { return DiscoverIn(context.Background(), args) }

// DiscoverIn finds the inputs below files, directories and glob patterns, here
// or in object stores, in order of path and each once. Files in directories are
// told by their first bytes and not by their names.
func DiscoverIn(ctx context.Context, args []string) (Found, error) {
	var out Found
	seen := map[string]bool{}
	add := func(in Input) {
		if key := in.absPath(); !seen[key] {
			seen[key] = true
			out.Inputs = append(out.Inputs, in)
		}
	}
	for _, arg := range args {
		if store.IsURL(arg) {
			if err := discoverRemote(ctx, arg, &out, add); err != nil {
				return out, err
			}
			continue
		}
		arg, err := store.Local(arg)
		if err != nil {
			return out, err
		}
		if arg == Stdin {
			add(Input{Path: arg, Bytes: -1, Named: true})
			continue
		}
		paths := []string{arg}
		if _, err := os.Lstat(arg); err != nil {
			m, gerr := filepath.Glob(arg)
			if gerr != nil || len(m) == 0 {
				return out, fmt.Errorf("%s: no such file, directory or match", arg)
			}
			sort.Strings(m)
			paths = m
		}
		for _, p := range paths {
			st, err := os.Stat(p)
			if err != nil {
				return out, err
			}
			if !st.IsDir() {
				problem := ""
				if err := regular.Check(p, st.Mode()); err != nil {
					problem = err.Error()
				}
				switch {
				case problem != "":
					add(Input{Path: p, Named: true, Problem: problem})
				case filepath.Base(p) == collected.StatusFile:
					out.addJob(filepath.Dir(p), true, add)
				case isTable(p):
					addTable(p, st.Size(), true, add)
				default:
					add(Input{Path: p, Bytes: st.Size(), Named: true})
				}
				continue
			}
			if nsight.Sniff(p) != nsight.None {
				if err := addDir(p, true, add); err != nil {
					return out, err
				}
				continue
			}
			if err := walk(p, &out, add); err != nil {
				return out, err
			}
		}
	}
	if len(out.Inputs) == 0 && out.EmptyJobs == 0 {
		return out, fmt.Errorf("%w in %s", ErrNoInputs, store.Clean(strings.Join(args, ", ")))
	}
	return out, nil
}

func walk(root string, out *Found, add func(Input)) error {
	return regular.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := e.Name()
		if e.IsDir() {
			if p != root && (strings.HasPrefix(name, ".") || isLake(p)) {
				return fs.SkipDir
			}
			if p != root && nsight.Sniff(p) != nsight.None { // parquetdir, arrowdir
				if err := addDir(p, false, add); err != nil {
					return err
				}
				return fs.SkipDir
			}
			if collected.IsJob(p) {
				out.addJob(p, false, add)
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasPrefix(name, ".") {
			return nil
		}
		st, err := os.Stat(p) // through links
		if err != nil || !st.Mode().IsRegular() {
			out.Ignored++
			return nil
		}
		switch {
		case isTable(p):
			addTable(p, st.Size(), false, add)
		case looksLikeTrace(p):
			add(Input{Path: p, Bytes: st.Size()})
		default:
			out.Ignored++
		}
		return nil
	})
}

// addDir adds a directory that is one input.
func addDir(path string, named bool, add func(Input)) error {
	src, err := sourceOf(path)
	if err == nil {
		add(Input{Path: path, Bytes: src.Bytes, Named: named})
	}
	return err
}

// isLake reports whether a directory is a dataset, which holds no inputs.
func isLake(dir string) bool {
	st, err := os.Stat(filepath.Join(dir, lake.MetaDir))
	return err == nil && st.IsDir()
}

// looksLikeTrace reports whether a file that nobody named may be a trace: an
// export of Nsight Systems, JSON by its first bytes, perhaps compressed, or of a
// name that says so, so that a broken trace is reported and not passed over.
func looksLikeTrace(path string) bool {
	switch nsight.Sniff(path) {
	case nsight.None:
	case nsight.SQLite:
		return strings.HasSuffix(path, ".sqlite") || mentions(path, "StringIds") // others keep databases, too
	case nsight.Report:
		return !hasExport(path)
	default:
		return true
	}
	if namedLikeTrace(path) {
		return true
	}
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return startsLikeJSON(bufio.NewReader(f), 0)
}

func namedLikeTrace(path string) bool {
	lower := strings.ToLower(path)
	return slices.ContainsFunc([]string{".json", ".json.gz", ".json.zst", ".pt.trace.gz"}, func(s string) bool {
		return strings.HasSuffix(lower, s)
	})
}

// mentions reports whether a word stands near the start of a file, where a
// database names its tables.
func mentions(path, word string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head, err := io.ReadAll(io.LimitReader(f, 1<<20))
	return err == nil && bytes.Contains(head, []byte(word))
}

// hasExport reports whether an export stands beside a report, which is then
// the input.
func hasExport(report string) bool {
	stem := strings.TrimSuffix(report, filepath.Ext(report))
	for _, s := range []string{".sqlite", "_pqtdir", "_arwdir", ".arrows", ".jsonl"} {
		if nsight.Sniff(stem+s) != nsight.None {
			return true
		}
	}
	return false
}

// maxLayers is how many compressions around each other are looked through.
const maxLayers = 2

func startsLikeJSON(br *bufio.Reader, depth int) bool {
	layer, err := unpack.Open(br, inflate.Options{})
	if err != nil {
		return false
	}
	if layer != nil {
		defer layer.Close()
		return depth < maxLayers && startsLikeJSON(bufio.NewReader(layer), depth+1)
	}
	head, _ := br.Peek(512)
	head = bytes.TrimPrefix(head, []byte{0xef, 0xbb, 0xbf})
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && (head[0] == '{' || head[0] == '[')
}
