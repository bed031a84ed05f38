//go:build cgo && !noduckdb

package query

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"tracelake/internal/scratch"
	"tracelake/schema"
	"tracelake/schema/lake"
)

// remote are the parts of a dataset in an object store. DuckDB reads files of
// this machine only, so that the parts of a table are copied when the first
// query comes that may read it.
type remote struct {
	l      *lake.Lake
	dir    string
	parts  map[string][]string        // paths within the lake by table, of tables that are not here yet
	bytes  map[string]int64           // by path
	all    []lake.Commit              // whose parts they are
	keep   map[string]map[string]bool // traces whose rows count, by path, of parts that have rows of others
	mixed  bool
	before map[string][]string // words in the definition of a view or macro, by its name
}

func newRemote(l *lake.Lake, commits []lake.Commit, files map[string][]string, mixed bool, dir string) *remote {
	r := &remote{l: l, dir: dir, parts: map[string][]string{}, bytes: map[string]int64{}, all: commits, keep: lake.Keep(commits), mixed: mixed, before: map[string][]string{}}
	for _, c := range commits {
		for _, f := range c.Files {
			r.bytes[f.Path] = f.Bytes
		}
	}
	root := l.Root() + "/"
	for table, list := range files {
		for _, url := range list {
			r.parts[table] = append(r.parts[table], strings.TrimPrefix(url, root))
		}
	}
	for _, statement := range split(emptyViews()) {
		if m := created.FindStringSubmatch(statement); m != nil {
			r.before[m[1]] = words(statement)
		}
	}
	r.before["diagnostics"] = append(r.before["diagnostics"], words(schema.ViewSQL(&schema.TableDiagnostics, ""))...)
	return r
}

// whole are the tables of which all rows say something about a selection: which
// ranks of a run are missing, for example.
var whole = []string{schema.TableTraces.Name, schema.TableDiagnostics.Name}

// only forgets the parts that have no rows of the traces that variables select.
func (r *remote) only(vars map[string]any) {
	is := func(name, value string) bool {
		want, ok := vars[name]
		return !ok || fmt.Sprint(want) == value
	}
	wanted := map[string]bool{}
	for _, c := range r.all {
		rank := "none"
		if c.Rank != nil {
			rank = fmt.Sprint(*c.Rank)
		}
		if is("run", c.Run) && is("rank", rank) && is("trace", c.TraceID) {
			for _, f := range c.Files {
				wanted[f.Path] = true
			}
		}
	}
	for table, list := range r.parts {
		if slices.Contains(whole, table) || schema.TableByName(table) == nil {
			continue
		}
		if r.parts[table] = slices.DeleteFunc(list, func(rel string) bool { return !wanted[rel] }); len(r.parts[table]) == 0 {
			delete(r.parts, table)
		}
	}
}

var created = regexp.MustCompile(`(?i)CREATE OR REPLACE (?:VIEW|MACRO) (\w+)`)

// copies returns where the parts of each table will be on this machine.
func (r *remote) copies() map[string][]string {
	out := map[string][]string{}
	for table, list := range r.parts {
		for _, rel := range list {
			out[table] = append(out[table], r.local(rel))
		}
	}
	return out
}

func (r *remote) local(rel string) string { return filepath.Join(r.dir, filepath.FromSlash(rel)) }

// words returns the names that may stand in a script: all words outside of
// comments and texts.
func words(script string) []string {
	var code strings.Builder
	for i := 0; i < len(script); {
		rest := script[i:]
		n := max(1, skip(rest))
		if strings.HasPrefix(rest, "--") || strings.HasPrefix(rest, "/*") || rest[0] == '\'' {
			code.WriteByte(' ')
		} else {
			code.WriteString(rest[:n])
		}
		i += n
	}
	return word.FindAllString(strings.ToLower(code.String()), -1)
}

var word = regexp.MustCompile(`\w+`)

// byText are functions that take the names of tables as texts.
var byText = []string{"query", "query_table"}

// needed returns the tables that a script may read, directly or through views.
func (r *remote) needed(script string) (tables []string) {
	seen := map[string]bool{}
	all := false
	next := words(script)
	for len(next) > 0 {
		w := next[0]
		next = next[1:]
		if seen[w] {
			continue
		}
		seen[w] = true
		all = all || slices.Contains(byText, w)
		next = append(next, r.before[w]...)
	}
	for table := range r.parts {
		if seen[table] || all {
			tables = append(tables, table)
		}
	}
	slices.Sort(tables)
	return tables
}

// fetch copies the tables that a script may read, where they are not here yet.
func (db *DB) fetch(ctx context.Context, script string) error {
	r := db.remote
	if r == nil {
		return nil
	}
	tables := r.needed(script)
	total := int64(0)
	for _, table := range tables {
		for _, rel := range r.parts[table] {
			total += r.bytes[rel]
		}
	}
	if room := scratch.RoomIn(filepath.Dir(r.dir)); total > room {
		return fmt.Errorf("%s: the tables that the query reads (%s) have %d bytes; %d may be kept on this machine, half of what is free in %s: name another directory with --temp-dir, or copy the dataset",
			r.l.Root(), strings.Join(tables, ", "), total, room, filepath.Dir(filepath.Dir(r.dir)))
	}
	for _, table := range tables {
		if err := r.copyTable(ctx, table); err != nil {
			return err
		}
		var here []string
		for _, rel := range r.parts[table] {
			here = append(here, r.local(rel))
		}
		if _, err := db.conn.ExecContext(ctx, viewOf(table, here, r.mixed), nil); err != nil {
			return err
		}
		delete(r.parts, table)
		delete(db.pending, table)
	}
	return nil
}

// fetchAtOnce is how many parts are copied at once.
const fetchAtOnce = 8

func (r *remote) copyTable(ctx context.Context, table string) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fetchAtOnce)
	for _, rel := range r.parts[table] {
		g.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			return r.copyPart(ctx, rel)
		})
	}
	return g.Wait()
}

func (r *remote) copyPart(ctx context.Context, rel string) error {
	to := r.local(rel)
	if _, err := os.Stat(to); err == nil {
		return nil // copied before a query was interrupted
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	err := r.l.Fetch(ctx, rel, to, r.keep[rel])
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w; ask again: it may have been merged or replaced at this moment; if it was not, import its trace again with --force", err)
	}
	return err
}
