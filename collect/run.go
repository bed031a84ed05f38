package collect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"tracelake/collect/isolate"
	"tracelake/collect/modelcache"
)

// runner is one run.
type runner struct {
	o       *Options
	py      *Python
	probe   *Probe
	tracers []Tracer
	cache   string // of models
	slots   slots
	jobs    int

	mu  sync.Mutex
	sum Summary
}

// unit is a chain of jobs of one model of which, in order, the first that
// succeeds is enough; mostly it is one job.
type unit []*Job

// newRunner finds out everything that is the same for all jobs. A plan is made
// even where libraries are missing.
func newRunner(ctx context.Context, o *Options, run bool) (r *runner, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	environ := o.environ
	if environ == nil {
		environ = os.Environ()
	}
	getenv := func(name string) string { return lookup(environ, name) }
	python, err := FindPython(o.Python, getenv)
	if err != nil {
		return nil, err
	}
	if o.OutputDir, err = filepath.Abs(o.OutputDir); err != nil {
		return nil, err
	}
	if run {
		if err := writable(o.OutputDir); err != nil {
			return nil, err
		}
	}
	py, err := newPython(python, environ, o.workerDir)
	if err != nil {
		return nil, err
	}
	r = &runner{o: o, py: py, sum: Summary{Models: len(o.Models), Classes: map[string]int{}}}
	defer func() {
		if err != nil {
			py.Close()
		}
	}()
	list, notices, err := py.Tracers(ctx, o.TracerPath)
	if err != nil {
		return nil, err
	}
	for _, n := range notices {
		r.notice(n)
	}
	if r.tracers, err = choose(list, o.Tracers, o.Framework, o.Mode); err != nil {
		return nil, err
	}
	var unused []string
	if o.Framework == HuggingFace {
		unused = []string{VLLM} // the slowest of all to import
	}
	if r.probe, err = py.Probe(ctx, o.Framework == VLLM, unused...); err != nil {
		return nil, err
	}
	// Past any wrapper script: one process less per job.
	if exe := r.probe.Python.Executable; filepath.IsAbs(exe) && exists(exe) {
		py.Path = exe
	}
	if err := r.libraries(); err != nil {
		if run {
			return nil, err
		}
		r.notice(err.Error())
	}
	if err := r.devices(); err != nil {
		return nil, err
	}
	r.o.Offline = o.Offline || slices.Contains([]string{"1", "ON", "YES", "TRUE"}, strings.ToUpper(getenv("HF_HUB_OFFLINE")))
	env := o.Config.environ(environ, "common")
	r.cache = modelcache.Dir(func(name string) string { return lookup(env, name) })
	r.sum.Planned = len(o.Models) * len(r.tracers)
	return r, nil
}

// ErrOutput means that the directory for results cannot be written.
var ErrOutput = errors.New("--output-dir")

// writable makes a directory and tries it: hours of tracing must not end in
// results that cannot be written.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("%w: %w", ErrOutput, err)
	}
	f, err := os.CreateTemp(dir, ".tracelake-*")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOutput, err)
	}
	f.Close()
	return os.Remove(f.Name())
}

// libraries fails early, and once, for what every job would fail of.
func (r *runner) libraries() error {
	need := []string{"torch", "transformers"}
	if r.o.Framework == VLLM {
		need = []string{"torch", "vllm"}
	}
	hub := slices.ContainsFunc(r.o.Models, func(m Model) bool { return m.Path == "" })
	if hub && !r.o.Offline {
		need = append(need, "huggingface_hub")
	}
	if lacks := r.probe.lacks(need); len(lacks) > 0 {
		return fmt.Errorf("%s cannot trace %s models: %s; `tracelake collect doctor` says how to install it", r.py.Path, r.o.Framework, strings.Join(lacks, ", "))
	}
	// Of all tracers, those whose own libraries are there; named ones fail
	// with the reason.
	if len(r.o.Tracers) == 0 || r.o.Tracers[0] == "all" {
		r.tracers = slices.DeleteFunc(r.tracers, func(t Tracer) bool {
			lacks := r.probe.lacks(t.Requires)
			if len(lacks) > 0 {
				r.notice(fmt.Sprintf("tracer %s is left out: %s", t.Name, strings.Join(lacks, ", ")))
			}
			return len(lacks) > 0
		})
		if len(r.tracers) == 0 {
			return fmt.Errorf("no tracer can run with %s; `tracelake collect doctor` says why", r.py.Path)
		}
	}
	return nil
}

// devices settles where jobs run and how many at once.
func (r *runner) devices() error {
	o := r.o
	if o.Device == "auto" {
		o.Device = "cpu"
		if r.probe.CUDA.Available {
			o.Device = "cuda"
		}
	}
	r.jobs = max(o.Jobs, 1)
	if o.Device == "cpu" {
		if len(o.GPUs) > 0 {
			return usage("--gpus is given, and the device is cpu")
		}
		return nil
	}
	gpus := slices.Clone(o.GPUs)
	if gpus == nil {
		if !r.probe.CUDA.Available {
			return fmt.Errorf("device cuda: torch in %s sees no GPU%s", r.py.Path, orReason(r.probe.CUDA.Error))
		}
		for i := range r.probe.CUDA.Count {
			gpus = append(gpus, fmt.Sprint(i))
		}
	}
	// Numbers count what the user lets torch see, as cuda:N does there.
	visible := strings.FieldsFunc(lookup(r.py.env, "CUDA_VISIBLE_DEVICES"), func(c rune) bool { return c == ',' || c == ' ' })
	for i, g := range gpus {
		n, err := strconv.Atoi(g)
		if err != nil || len(visible) == 0 {
			continue
		}
		if n < 0 || n >= len(visible) {
			return usage("GPU %s: CUDA_VISIBLE_DEVICES shows %d, counted from 0", g, len(visible))
		}
		gpus[i] = visible[n]
	}
	for i, g := range gpus {
		if g == "" || strings.ContainsFunc(g, func(c rune) bool { return c <= ' ' || c == ',' || c > '~' }) || slices.Contains(gpus[:i], g) {
			return usage("--gpus: %q is no GPU, or there twice", g)
		}
	}
	if o.TensorParallel > len(gpus) {
		return usage("--tensor-parallel-size %d needs as many GPUs; there are %d", o.TensorParallel, len(gpus))
	}
	r.slots = newSlots(gpus, o.TensorParallel)
	if o.Jobs == 0 {
		r.jobs = cap(r.slots)
	}
	return nil
}

func orReason(s string) string {
	if s == "" {
		return ""
	}
	return " (" + clipText(s, 200) + ")"
}

func (r *runner) notice(text string) {
	if r.o.Notice != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.o.Notice(text)
	}
}

// report passes on what became of a job.
func (r *runner) report(rep Report) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sum.add(&rep)
	if r.o.Report != nil {
		r.o.Report(rep)
	}
}

// Run runs every tracer on every model. It fails as a whole only where nothing
// could run; what fails of a job is in its report.
func Run(ctx context.Context, o Options) (Summary, error) {
	started := time.Now()
	r, err := newRunner(ctx, &o, true)
	if err != nil {
		return Summary{}, err
	}
	defer r.py.Close()
	if o.Planned != nil {
		o.Planned(r.sum.Planned)
	}

	// Models are prepared a few ahead of the jobs, never all at once.
	models := make(chan Model)
	units := make(chan unit)
	go func() {
		defer close(models)
		for _, m := range o.Models {
			select {
			case models <- m:
			case <-ctx.Done():
				return
			}
		}
	}()
	var fetchers, workers sync.WaitGroup
	for range min(o.DownloadWorkers, len(o.Models)) {
		fetchers.Go(func() {
			for m := range models {
				for _, u := range r.prepare(ctx, m) {
					units <- u
				}
			}
		})
	}
	for range r.jobs {
		workers.Go(func() {
			for u := range units {
				r.runUnit(ctx, u)
			}
		})
	}
	fetchers.Wait()
	close(units)
	workers.Wait()
	r.sum.Seconds = time.Since(started).Seconds()
	return r.sum, nil
}

// newJobs makes the jobs of a model, without knowing the model.
func (r *runner) newJobs(m Model) []*Job {
	jobs := make([]*Job, len(r.tracers))
	for i := range r.tracers {
		t := r.tracers[i]
		j := &Job{Model: m, Tracer: t, Framework: r.o.Framework, Mode: r.o.Mode, Device: r.o.Device}
		j.Dir = filepath.Join(r.o.OutputDir, m.Subdir(), r.o.Mode, t.Name)
		if r.o.Flat {
			j.Dir = filepath.Join(r.o.OutputDir, t.Name)
		}
		j.key = r.o.keyParts(j, r.probe)
		jobs[i] = j
	}
	return jobs
}

// locate fills in what is known of a model without asking the hub.
func (r *runner) locate(m Model, jobs []*Job) {
	path, rev := "", ""
	if m.Path != "" {
		if f, err := modelcache.Fingerprint(m.Path); err == nil {
			path, rev = m.Path, f
		}
	} else if s, err := modelcache.Find(r.cache, m.ID, m.Revision); err == nil {
		path, rev = s.Path, s.Revision
	} else if isCommit(m.Revision) {
		rev = m.Revision
	}
	for _, j := range jobs {
		j.resolve(path, rev)
	}
}

func isCommit(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}

// needsWeights says whether any of some jobs loads weights.
func (r *runner) needsWeights(jobs []*Job) bool {
	return !r.o.DummyWeights && slices.ContainsFunc(jobs, func(j *Job) bool { return j.Tracer.weights() })
}

// prepare fetches and checks a model and returns what of it is to run. What
// cannot run is reported here.
func (r *runner) prepare(ctx context.Context, m Model) []unit {
	jobs := r.newJobs(m)
	r.locate(m, jobs)
	open := r.open(jobs)
	if len(open) == 0 || ctx.Err() != nil {
		return nil
	}
	s, err := r.fetch(ctx, m, r.needsWeights(open))
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		r.failAll(open, err)
		return nil
	}
	rev := s.Revision
	if m.Path != "" {
		rev = open[0].Revision
	}
	for _, j := range open {
		j.resolve(s.Path, rev)
	}
	if m.Path == "" { // the commit is known only now
		if open = r.open(open); len(open) == 0 {
			return nil
		}
	}
	return chains(r.usable(s, open))
}

// open returns the jobs whose results are not there, and reports the others.
func (r *runner) open(jobs []*Job) []*Job {
	if r.o.Force {
		return jobs
	}
	var out []*Job
	done := map[string]string{}
	verdicts := make([]Verdict, len(jobs))
	for i, j := range jobs {
		verdicts[i] = judge(j)
		if verdicts[i].Done && j.Tracer.ExclusiveGroup != "" {
			done[j.Tracer.ExclusiveGroup] = j.Tracer.Name
		}
	}
	for i, j := range jobs {
		switch by := done[j.Tracer.ExclusiveGroup]; {
		case verdicts[i].Done:
			r.report(j.report(Done, verdicts[i].Why))
		case by != "":
			r.report(j.report(Skipped, standsFor(by, j.Tracer.ExclusiveGroup)))
		default:
			out = append(out, j)
		}
	}
	return out
}

func standsFor(tracer, group string) string {
	return fmt.Sprintf("%s stands for the group %s", tracer, group)
}

// usable drops jobs that the files of the model cannot serve.
func (r *runner) usable(s *modelcache.Snapshot, jobs []*Job) []*Job {
	var out []*Job
	config, err := s.Config()
	for _, j := range jobs {
		need := r.need(j)
		problems := s.Check(need)
		switch {
		case len(problems) > 0:
			r.fail(j, "incomplete", describe(problems))
		case err != nil:
			r.fail(j, "incomplete", err.Error())
		case j.Framework == VLLM && !r.supported(config):
			r.fail(j, "unsupported", fmt.Sprintf("vLLM %s does not support the architecture %s",
				r.probe.Libraries["vllm"].Version, orNothing(strings.Join(config.Architectures, ", "))))
		default:
			out = append(out, j)
		}
	}
	return out
}

func describe(problems []modelcache.Problem) string {
	texts := make([]string, 0, 4)
	for i, p := range problems {
		if i == 3 {
			texts = append(texts, fmt.Sprintf("and %d more", len(problems)-i))
			break
		}
		texts = append(texts, p.String())
	}
	return strings.Join(texts, "; ")
}

func orNothing(s string) string {
	if s == "" {
		return "(config.json names none)"
	}
	return clipText(s, 200)
}

// supported asks the list that vLLM itself gave.
func (r *runner) supported(c *modelcache.Config) bool {
	if r.probe.Architectures == nil { // it would not say
		return true
	}
	return slices.ContainsFunc(c.Architectures, func(a string) bool { return slices.Contains(r.probe.Architectures, a) })
}

// chains puts tracers of one group behind each other.
func chains(jobs []*Job) []unit {
	var out []unit
	at := map[string]int{}
	for _, j := range jobs {
		g := j.Tracer.ExclusiveGroup
		if i, ok := at[g]; ok && g != "" {
			out[i] = append(out[i], j)
			continue
		}
		at[g] = len(out)
		out = append(out, unit{j})
	}
	return out
}

func (r *runner) failAll(jobs []*Job, err error) {
	class, text := isolate.StartFailed, err.Error()
	if m := (*modelError)(nil); errors.As(err, &m) {
		class = m.class
	}
	for _, j := range jobs {
		r.fail(j, class, text)
	}
}

// need says what of its model a job uses.
func (r *runner) need(j *Job) modelcache.Need {
	return modelcache.Need{
		Tokenizer: j.Framework == VLLM, Weights: j.Tracer.weights() && !r.o.DummyWeights, ShardsFirst: j.Framework == VLLM,
	}
}
