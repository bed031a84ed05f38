package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/pflag"

	"tracelake/analyze/query"
	"tracelake/internal/store"
	"tracelake/schema/lake"
)

// engineFlags say what DuckDB may use.
type engineFlags struct {
	maxMemory sizeValue
	threads   int
	tempDir   string
	lazy      bool // nobody asks for a list of the tables
	maxSpill  sizeValue
}

func (e *engineFlags) flags(f *pflag.FlagSet) {
	f.Var(&e.maxMemory, "max-memory", "memory that the command may take: DuckDB spills to disk before (default: 80 % of the machine)")
	f.IntVar(&e.threads, "threads", 0, "threads of DuckDB (default: one per processor)")
	f.StringVar(&e.tempDir, "temp-dir", "", "directory for what does not fit into memory (default: the system's)")
	f.Var(&e.maxSpill, "max-spill", "how much of the disk that may take (default: half of what is free)")
}

// besides is what a process takes besides the memory that DuckDB counts: its
// code, files at hand, and up to a sixth of 2 GiB while it spills.
const besides = 320 << 20

// openLake opens a dataset for queries.
func openLake(ctx context.Context, dir string, e engineFlags) (*query.DB, error) {
	if e.threads < 0 {
		return nil, errUsage("--threads must not be negative")
	}
	options := query.Options{Threads: e.threads, TempDir: e.tempDir, Lazy: e.lazy}
	if e.maxMemory > 0 {
		options.Memory = fmt.Sprintf("%dB", int64(e.maxMemory)-min(besides, int64(e.maxMemory)/4))
	}
	if e.maxSpill > 0 {
		options.Spill = fmt.Sprintf("%dB", int64(e.maxSpill))
	}
	db, err := query.Open(ctx, dir, options)
	if errors.Is(err, query.ErrTempDir) {
		return nil, errUsage("--temp-dir: %v", err)
	}
	var unread *store.Error
	if errors.As(err, &unread) || errors.Is(err, lake.ErrNotLake) || errors.Is(err, lake.ErrNewer) || errors.Is(err, fs.ErrNotExist) {
		return nil, errInput("%v", err)
	}
	return db, err
}
