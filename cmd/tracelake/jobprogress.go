package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tracelake/collect"
)

// jobProgress counts jobs that ended, on a terminal only.
type jobProgress struct {
	mu  sync.Mutex
	bar *progressbar.ProgressBar
}

func newJobProgress(o collect.Options, off bool) *jobProgress {
	p := &jobProgress{}
	if off || !term.IsTerminal(int(os.Stderr.Fd())) {
		return p
	}
	p.bar = progressbar.NewOptions(-1, // until the number of jobs is known
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionSetWidth(30), progressbar.OptionThrottle(100e6),
		progressbar.OptionShowCount(), progressbar.OptionSetItsString("jobs"), progressbar.OptionClearOnFinish(),
		progressbar.OptionSetDescription(fmt.Sprintf("%d models", len(o.Models))))
	return p
}

func (p *jobProgress) planned(jobs int) {
	if p.bar != nil {
		p.bar.ChangeMax(jobs)
	}
}

func (p *jobProgress) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

// print prints a line above the bar.
func (p *jobProgress) print(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(shownStderr(), line)
}

func (p *jobProgress) close() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
