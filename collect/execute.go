package collect

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tracelake/collect/isolate"
	"tracelake/collect/worker"
)

func (j *Job) report(outcome, message string) Report {
	return Report{
		Model: j.Model.String(), Revision: j.Revision, Framework: j.Framework, Tracer: j.Tracer.Name, Mode: j.Mode,
		Outcome: outcome, Message: message, Dir: j.Dir,
	}
}

// runUnit runs the jobs of a chain until one succeeds.
func (r *runner) runUnit(ctx context.Context, u unit) {
	by := ""
	for _, j := range u {
		if ctx.Err() != nil {
			return
		}
		if by != "" {
			r.report(j.report(Skipped, standsFor(by, j.Tracer.ExclusiveGroup)))
			continue
		}
		rep := r.runJob(ctx, j)
		r.report(rep)
		if (rep.Outcome == isolate.OK || rep.Outcome == Done) && j.Tracer.ExclusiveGroup != "" {
			by = j.Tracer.Name
		}
	}
}

// runJob runs one job with its retries. The lock keeps other processes out.
func (r *runner) runJob(ctx context.Context, j *Job) Report {
	p := place{j.Dir}
	l, err := p.lock()
	if err != nil {
		return j.report(isolate.StartFailed, err.Error())
	}
	if l == nil {
		return j.report(Busy, "another process runs it")
	}
	defer l.Close()
	if err := p.recover(); err != nil {
		return j.report(isolate.StartFailed, err.Error())
	}
	v := judge(j)
	if v.Done && !r.o.Force {
		return j.report(Done, v.Why)
	}
	gpus, ok := r.slots.take(ctx)
	if !ok {
		return j.report(isolate.Interrupted, "stopped on request")
	}
	defer r.slots.give(gpus)
	for try := 0; ; try++ {
		rep := r.attempt(ctx, j, p, &v, gpus)
		if rep.Outcome == isolate.OK || try >= r.o.Retry || !retryable(rep.Outcome) || rep.Outcome == isolate.Failed || ctx.Err() != nil {
			return rep
		}
		r.notice(j.Model.String() + " " + j.Tracer.Name + ": " + rep.Outcome + " (" + rep.Message + "); trying again")
	}
}

// notConverted is the outcome of a job whose result is in place and could not be
// imported.
const notConverted = "convert"

// attempt runs the tracer once and puts result and status in place.
func (r *runner) attempt(ctx context.Context, j *Job, p place, v *Verdict, gpus []string) Report {
	s := r.newStatus(j)
	s.GPUs = gpus
	if v.last != nil {
		s.Attempt = v.last.Attempt + 1
	}
	dir, err := p.begin()
	if err != nil {
		return j.report(isolate.StartFailed, err.Error())
	}
	p.carryLogs(v.last)
	out, err := r.trace(ctx, j, dir, gpus)
	if err != nil {
		out.Class, out.Message = isolate.StartFailed, err.Error()
	}
	s.fill(&out)
	if out.Class == isolate.OK {
		s.Artifacts, s.ArtifactsBeyond, err = artifacts(dir, out.Result)
		if err != nil {
			s.Outcome, s.Message, s.Success = isolate.Failed, err.Error(), false
		}
	}
	if s.Success {
		err = s.write(filepath.Join(dir, StatusFile))
		if err == nil {
			err = p.promote()
		}
		if err != nil {
			s.Outcome, s.Message, s.Success = isolate.StartFailed, "the result cannot be put in place: "+err.Error(), false
		}
	}
	if !s.Success {
		if err := p.keep(s, v.Good); err != nil {
			s.Message += "; and its status cannot be kept: " + err.Error()
		}
	}
	rep := j.report(s.Outcome, s.Message)
	rep.Attempt, rep.Seconds, rep.PeakRSS = s.Attempt, s.Seconds, s.PeakRSS
	switch {
	case s.Success:
		v.Good, v.last = true, s
		os.Remove(filepath.Join(j.Dir, failedFile))
		os.Remove(filepath.Join(j.Dir, failedLog))
		if r.o.OnFinished == nil {
			break
		}
		if err := r.o.OnFinished(*j, s); err != nil {
			rep.Outcome, rep.Message = notConverted, err.Error()
		}
	case !v.Good:
		v.last = s
	case v.last != nil:
		v.last.Attempt = s.Attempt
	}
	return rep
}

// trace runs the worker.
func (r *runner) trace(ctx context.Context, j *Job, dir string, gpus []string) (isolate.Outcome, error) {
	job := r.o.workerJob(j.Model)
	job.Tracer, job.OutputDir, job.Device = j.Tracer.Name, dir, j.Device
	job.ModelPath = &j.ModelPath
	if j.Model.Path == "" {
		job.Revision = &j.Revision
	}
	if opts := r.o.TracerOptions[j.Tracer.Name]; opts != nil {
		job.Options = opts
	}
	path, err := r.py.writeJob(job)
	if err != nil {
		return isolate.Outcome{}, err
	}
	defer os.Remove(path)
	timeout := r.o.Timeout
	return isolate.Run(ctx, isolate.Spec{
		Argv: []string{r.py.Path, "-X", "faulthandler", "-m", worker.Module, "run", "--job", path},
		Env:  r.jobEnv(j, gpus), Dir: dir, LogPath: filepath.Join(dir, LogFile),
		MaxRSS: r.o.MaxRSS, Timeout: timeout, Stall: r.o.StallTimeout,
	}), nil
}

// jobEnv is the user's environment over the configuration's, and over both
// what a tracing job always has: no network of the hub's client, its own GPUs.
func (r *runner) jobEnv(j *Job, gpus []string) []string {
	env := r.o.Config.environ(r.py.env, "common", "offline", j.Framework, j.Tracer.Name)
	env = with(env, "HF_HUB_OFFLINE=1", "TRANSFORMERS_OFFLINE=1", "HF_DATASETS_OFFLINE=1")
	switch {
	case gpus != nil:
		env = with(env, "CUDA_VISIBLE_DEVICES="+strings.Join(gpus, ","))
	case j.Device == "cpu":
		env = with(env, "CUDA_VISIBLE_DEVICES=")
	}
	return env
}

func (r *runner) newStatus(j *Job) *Status {
	host, _ := os.Hostname()
	return &Status{
		Tracer: j.Tracer.Name, Framework: j.Framework, Model: j.Model.ID, Device: j.Device, Mode: j.Mode,
		Timestamp: time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), Schema: StatusVersion, ModelID: j.Model.ID,
		TracerVersion: j.Tracer.Version, Revision: j.Revision, ModelPath: j.ModelPath,
		Key: keyHash(j.key), KeyParts: j.key, Attempt: 1, Writer: r.o.Writer, Host: host,
	}
}

// fill takes over how the worker ended.
func (s *Status) fill(out *isolate.Outcome) {
	s.Outcome, s.Message, s.Success = out.Class, out.Message, out.Class == isolate.OK
	if out.Signal == "" && out.Exit >= 0 {
		s.ExitStatus = &out.Exit
	}
	s.Signal, s.Seconds, s.Phases, s.PeakRSS = out.Signal, out.Duration.Seconds(), out.Phases, out.PeakRSS
	s.Started = out.Started.UTC().Format(time.RFC3339Nano)
	s.Timestamp = out.Started.Add(out.Duration).UTC().Format("2006-01-02T15:04:05.000000Z")
	s.Log, s.LogBytes, s.LogCut = LogFile, out.LogBytes, out.LogCut
	s.Leftovers, s.Survivors, s.Garbage, s.Confined, s.Start = out.Leftovers, out.Survivors, out.Garbage, out.Confined, out.Start
	r := out.Result
	if r == nil {
		return
	}
	if r.Architecture != "" {
		s.Model = r.Architecture
	}
	s.PeakDevice, s.Details, s.Architecture, s.Error = r.PeakDeviceBytes, r.Details, r.Architecture, r.Error
	for _, t := range r.Tables {
		s.Tables = append(s.Tables, Table{t.Name, t.Path, t.Rows})
	}
}

// fail records a job that could not be started for a reason that is known
// beforehand.
func (r *runner) fail(j *Job, class, text string) {
	rep := j.report(class, text)
	defer func() { r.report(rep) }()
	p := place{j.Dir}
	l, err := p.lock()
	if err != nil || l == nil {
		return
	}
	defer l.Close()
	v := judge(j)
	s := r.newStatus(j)
	s.Outcome, s.Message = class, text
	if v.last != nil {
		s.Attempt = v.last.Attempt + 1
	}
	rep.Attempt = s.Attempt
	if err := p.recover(); err == nil {
		_, err = p.begin()
		if err == nil {
			p.carryLogs(v.last)
			err = p.keep(s, v.Good)
		}
		if err != nil {
			rep.Message += "; and its status cannot be kept: " + err.Error()
		}
	}
}
