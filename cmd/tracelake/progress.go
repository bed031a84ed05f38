package main

import (
	"fmt"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"tracelake/convert"
)

// progress shows how many bytes of the inputs, as stored, were read. On
// anything but a terminal it shows nothing.
type progress struct {
	mu    sync.Mutex
	bar   *progressbar.ProgressBar
	seen  map[string]int64
	sizes map[string]int64
}

func newProgress(inputs []convert.Input, off bool) *progress {
	p := &progress{seen: map[string]int64{}, sizes: map[string]int64{}}
	total := int64(0)
	for _, in := range inputs {
		if in.Bytes > 0 {
			total += in.Bytes
			p.sizes[in.Path] = in.Bytes
		}
	}
	if off || total == 0 || !term.IsTerminal(int(os.Stderr.Fd())) {
		return p
	}
	p.bar = progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(os.Stderr), progressbar.OptionShowBytes(true), progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(100e6), progressbar.OptionClearOnFinish(), progressbar.OptionSetDescription(fmt.Sprintf("%d files", len(inputs))))
	return p
}

// read notes how much of an input was read so far.
func (p *progress) read(path string, n int64) {
	if p.bar == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := n - p.seen[path]; d > 0 {
		p.seen[path] = n
		_ = p.bar.Add64(d)
	}
}

// done counts the rest of an input as read.
func (p *progress) done(path string) { p.read(path, p.sizes[path]) }

// print prints a line above the bar.
func (p *progress) print(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear()
	}
	fmt.Fprintln(shownStderr(), line)
}

func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Finish()
	}
}
