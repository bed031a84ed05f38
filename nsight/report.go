package nsight

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"time"

	"tracelake/internal/scratch"
)

// exporter is the program that turns a report into an export.
const exporter = "nsys"

// exportTimeout bounds an export.
const exportTimeout = 2 * time.Hour

// openReport exports a report to a temporary directory, where nsys is there.
func openReport(ctx context.Context, path string, o Options) (tables, error) {
	program, err := exec.LookPath(exporter)
	if err != nil {
		return nil, reject("a report that only %s can read, and no %s is on PATH: run \"%s export --type sqlite -o REPORT.sqlite %s\" where it is installed, and convert REPORT.sqlite",
			exporter, exporter, exporter, filepath.Base(path))
	}
	dir, err := scratch.New()
	if err != nil {
		return nil, err
	}
	remove := dir.Remove
	out := filepath.Join(dir.Path(), "report.sqlite")
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "export", "--type", "sqlite", "--lazy", "true", "--output", out, path)
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil { // what it prints may hold the environment of the traced program
		return nil, errors.Join(ctx.Err(), reject("%s export failed (%v): run it by hand on %s to see why", exporter, err, filepath.Base(path)), remove())
	}
	t, err := open(ctx, out, o)
	if err != nil {
		return nil, errors.Join(err, remove())
	}
	return &exported{tables: t, remove: remove}, nil
}

// exported is an export that is removed when it has been read.
type exported struct {
	tables
	remove func() error
}

func (e *exported) close() error { return errors.Join(e.tables.close(), e.remove()) }
