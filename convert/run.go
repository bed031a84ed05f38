package convert

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// Run imports inputs into the dataset at o.Output, several at once, largest
// first. report is called once per input, in the order in which they end, from
// one goroutine at a time. The error is about the dataset or the options; what
// is wrong with inputs is in the reports.
func Run(ctx context.Context, found Found, o Options, report func(Report)) (Summary, error) {
	i, err := Open(o)
	if err != nil {
		return Summary{}, err
	}
	return i.Import(ctx, found, report)
}

// Importer imports into one dataset again and again without reading all of its
// commits each time. One import must end before the next begins.
type Importer struct{ c *importer }

// Open makes or opens the dataset at o.Output for writing.
func Open(o Options) (*Importer, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	l, err := lake.Create(o.Output, o.Writer)
	if err != nil {
		return nil, err
	}
	if err := checkFormat(l, o.Format); err != nil {
		return nil, err
	}
	if !o.Member {
		if err := l.Tidy(staleAfter); err != nil {
			return nil, err
		}
	}
	return &Importer{&importer{
		o: o, lake: l, gate: make(chan struct{}, o.Workers),
		enc: newEncoders(columnar.Options{Compression: o.Compression}),
	}}, nil
}

// Import imports inputs as Run does. A copy of what was taken out because its job
// or its file replaced it is imported, and reported, a second time.
func (i *Importer) Import(ctx context.Context, found Found, report func(Report)) (Summary, error) {
	started := time.Now()
	c := i.c
	sum := Summary{Ignored: found.Ignored, EmptyJobs: found.EmptyJobs}
	became, err := c.outcomes(found.Inputs)
	if err != nil {
		return sum, err
	}
	got := func(in Input, rep Report) {
		sum.add(&rep)
		became.add(in, &rep)
		if report != nil {
			report(rep)
		}
	}
	err = c.each(ctx, found.Inputs, got)
	sum.Elapsed = time.Since(started)
	if err != nil || c.o.Member {
		return sum, err
	}
	err = c.finish(ctx, found.Inputs, became, &sum, true, func(again []copyOf) error {
		var inputs []Input
		for _, x := range again {
			sum.count(&x.rep, -1)
			inputs = append(inputs, x.in)
		}
		err := c.each(ctx, inputs, got)
		sum.Elapsed = time.Since(started)
		return err
	})
	return sum, err
}

// each imports inputs, several at once, largest first, and calls got for each, one
// at a time.
func (c *importer) each(ctx context.Context, inputs []Input, got func(Input, Report)) error {
	inputs = slices.Clone(inputs)
	sort.SliceStable(inputs, func(i, j int) bool { return inputs[i].Bytes > inputs[j].Bytes })

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		mu    sync.Mutex
		fatal error
		wg    sync.WaitGroup
		queue = make(chan Input)
		mem   = newBudget(c.o.MaxMemory)
	)
	for range min(c.o.Workers, len(inputs)) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for in := range queue {
				need := mem.take(c.estimate(in))
				c.active.Add(1)
				rep, err := c.one(ctx, in)
				c.active.Add(-1)
				mem.give(need)
				mu.Lock()
				switch {
				case err != nil && ctx.Err() != nil:
				case err != nil:
					fatal = err
					cancel()
				default:
					got(in, rep)
				}
				mu.Unlock()
			}
		}()
	}
feed:
	for _, in := range inputs {
		select {
		case queue <- in:
		case <-ctx.Done():
			break feed
		}
	}
	close(queue)
	wg.Wait()
	if fatal != nil {
		return fatal
	}
	return ctx.Err()
}

// finish does what concerns the dataset as a whole once inputs are in it. CopiesGone
// is told which of them had their rows in a trace that went; imports says that it
// imports them again.
func (c *importer) finish(ctx context.Context, inputs []Input, became outcomes, sum *Summary, imports bool, copiesGone func([]copyOf) error) (err error) {
	if err := c.lake.Refresh(); lake.OnlyDamaged(err) { // what was imported is whole, the rest waits
		sum.Notices = strings.Split(err.Error(), "\n")
		return nil
	}
	again, err := c.outdate(became, inputs, imports, sum)
	if err != nil {
		return err
	}
	if err := copiesGone(again); err != nil {
		return err
	}
	runs, err := c.runNotices(inputs)
	if err != nil {
		return err
	}
	sum.Notices = append(sum.Notices, runs...)
	if c.o.TargetFileSize > 0 {
		done, err := c.lake.Compact(ctx, lake.CompactOptions{
			TargetBytes: c.o.TargetFileSize, Runs: c.runsOf(inputs), Compression: c.o.Compression,
		})
		if err != nil {
			return err
		}
		sum.Compacted = &done
	} else if err := c.lake.Clean(ctx); err != nil {
		return err
	}
	if err := c.writeViews(); err != nil {
		return err
	}
	return c.lake.SaveIndex()
}

// checkFormat refuses to mix formats in one dataset: readers open a table as
// a whole.
func checkFormat(l *lake.Lake, f columnar.Format) error {
	some, ok, err := l.AnyCommit()
	if err != nil || !ok || len(some.Files) == 0 {
		return err
	}
	if arrow := strings.HasSuffix(some.Files[0].Path, ".arrow"); arrow != (f == columnar.Arrow) {
		return fmt.Errorf("%s holds files of another format than %s: convert into another directory", l.Root(), f)
	}
	return nil
}

// staleAfter is how long an unfinished transaction of another machine may rest
// before it counts as dead.
const staleAfter = 24 * time.Hour

// estimate guesses the memory that reading an input takes, in bytes.
func (c *importer) estimate(in Input) int64 {
	if in.Path == Stdin || in.remote != nil {
		return (&kinetoReader{}).memory(&c.o, in.Bytes)
	}
	return readerOf(in.Path).memory(&c.o, in.Bytes)
}

// budget hands out memory. A request larger than all of it waits until nobody
// else holds any.
type budget struct {
	mu    sync.Mutex
	cond  *sync.Cond
	limit int64
	used  int64
}

func newBudget(limit int64) *budget {
	b := &budget{limit: limit}
	b.cond = sync.NewCond(&b.mu)
	return b
}

func (b *budget) take(n int64) int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(n, b.limit)
	for b.used+n > b.limit {
		b.cond.Wait()
	}
	b.used += n
	return n
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	b.used -= n
	b.mu.Unlock()
	b.cond.Broadcast()
}

// runsOf returns the runs of inputs in order.
func (c *importer) runsOf(inputs []Input) []string {
	runs := map[string]bool{}
	for _, in := range inputs {
		runs[lake.RunSlug(c.o.runFor(in))] = true
	}
	return slices.Sorted(maps.Keys(runs))
}

// runNotices looks at the runs as a whole: ranks that occur twice or not at
// all.
func (c *importer) runNotices(inputs []Input) (out []string, err error) {
	if err := c.lake.Refresh(); err != nil {
		return nil, err
	}
	for _, run := range c.runsOf(inputs) {
		r, err := c.lake.RanksOf(run)
		if err != nil {
			return nil, err
		}
		for _, rank := range r.Repeated() {
			out = append(out, fmt.Sprintf("run %s: %d traces state rank %d (same_rank); they are kept apart by trace_id", run, len(r.Traces[rank]), rank))
		}
		if first, n := r.Missing(); n > 0 && len(r.Traces) > 0 {
			out = append(out, fmt.Sprintf("run %s: %d of %d ranks are missing, first %v (missing_ranks)", run, n, r.WorldSize(), first))
		}
	}
	return out, nil
}
