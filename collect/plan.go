package collect

import (
	"context"
	"errors"

	"tracelake/collect/modelcache"
)

// Plan actions.
const (
	ActRun      = "run"
	ActDownload = "download, run"
	ActSkip     = "skip"
	ActFail     = "fail"
)

// Planned is what a run would do about one job.
type Planned struct {
	Model     string `json:"model"`
	Revision  string `json:"revision,omitempty"`
	Framework string `json:"framework"`
	Tracer    string `json:"tracer"`
	Mode      string `json:"mode"`
	Device    string `json:"device"`
	Action    string `json:"action"`
	Reason    string `json:"reason"`
	Dir       string `json:"dir"`
	Key       string `json:"key,omitempty"`
}

// Plan says what Run would do, job by job, without the network and without
// writing.
func Plan(ctx context.Context, o Options, each func(Planned)) error {
	r, err := newRunner(ctx, &o, false)
	if err != nil {
		return err
	}
	defer r.py.Close()
	for _, m := range o.Models {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r.plan(m, each)
	}
	return nil
}

func (r *runner) plan(m Model, each func(Planned)) {
	jobs := r.newJobs(m)
	r.locate(m, jobs)
	first := map[string]string{}
	for _, j := range jobs {
		if v := judge(j); v.Done && !r.o.Force && j.Tracer.ExclusiveGroup != "" {
			first[j.Tracer.ExclusiveGroup] = j.Tracer.Name
		}
	}
	doneBy := cloneNames(first)
	for _, j := range jobs {
		p := Planned{
			Model: m.String(), Revision: j.Revision, Framework: j.Framework, Tracer: j.Tracer.Name, Mode: j.Mode, Device: j.Device, Dir: j.Dir,
		}
		if j.Revision != "" {
			p.Key = keyHash(j.key)
		}
		g := j.Tracer.ExclusiveGroup
		v := judge(j)
		switch {
		case v.Done && !r.o.Force:
			p.Action, p.Reason = ActSkip, v.Why
		case g != "" && doneBy[g] != "":
			p.Action, p.Reason = ActSkip, standsFor(doneBy[g], g)
		default:
			p.Action, p.Reason = r.foresee(m, j)
			if p.Reason == "" {
				p.Reason = v.Why
				if v.Done {
					p.Reason = "--force"
				}
			}
			if g != "" && first[g] != "" && p.Action != ActFail {
				p.Reason = "unless " + first[g] + " of the group " + g + " succeeds; " + p.Reason
			} else if g != "" && p.Action != ActFail {
				first[g] = j.Tracer.Name
			}
		}
		each(p)
	}
}

// foresee looks at the files that are there.
func (r *runner) foresee(m Model, j *Job) (action, reason string) {
	var s *modelcache.Snapshot
	var err error
	if m.Path != "" {
		s, err = modelcache.Local(m.Path)
	} else {
		s, err = r.cached(m, "")
	}
	if err != nil {
		var missing *modelError
		if m.Path == "" && !r.o.Offline && errors.As(err, &missing) {
			return ActDownload, ""
		}
		return ActFail, err.Error()
	}
	need := r.need(j)
	if problems := s.Check(need); len(problems) > 0 {
		if m.Path == "" && !r.o.Offline {
			return ActDownload, describe(problems)
		}
		return ActFail, "incomplete: " + describe(problems)
	}
	if c, err := s.Config(); err == nil && j.Framework == VLLM && !r.supported(c) {
		return ActFail, "unsupported by vLLM " + r.probe.Libraries["vllm"].Version
	}
	return ActRun, ""
}

func cloneNames(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}
