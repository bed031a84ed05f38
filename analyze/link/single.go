package link

import "tracelake/schema"

// GPULink is the link of one GPU event.
type GPULink struct {
	IterationRef *schema.EntityRef  // nil where there is no iteration
	Reason       string             // why there is none, or ""
	Launch       *schema.LaunchCall // nil where the call is unknown
}

// At returns the link of event i.
func (l *Links) At(t *schema.Trace, i int) GPULink {
	out := GPULink{Reason: l.Reason[i].String()}
	if ref, ok := l.Ref(i); ok {
		out.IterationRef = &ref
	}
	if p := l.Launch[i]; p >= 0 {
		call := t.Launches.At(int(p))
		out.Launch = &call
	}
	return out
}

// LinkGPUEvent links one GPU event by looking at every call and every span of
// the trace. For more than a few events use Resolve, which has the same answer.
func LinkGPUEvent(t *schema.Trace, i int, o Options) GPULink {
	launch, reason := scanLaunches(t, i, o)
	if launch < 0 {
		return GPULink{Reason: reason.String()}
	}
	call := t.Launches.At(launch)
	out := GPULink{Launch: &call}
	ref, state := scanSpans(t, launch, false)
	if state == None {
		ref, state = scanSpans(t, launch, true)
	}
	switch state {
	case None:
		out.Reason = OutsideIteration.String()
	case Ambiguous:
		out.Reason = AmbiguousRange.String()
	case One:
		out.IterationRef = &ref
	}
	return out
}

func scanLaunches(t *schema.Trace, i int, o Options) (launch int, reason Reason) {
	l, g := &t.Launches, &t.GPU
	corr, pid := g.Correlation[i], pidOf(g, i)
	launch = -1
	if corr == schema.Null {
		if !o.ExternalID || g.ExternalID == nil || l.ExternalID == nil || g.ExternalID[i] == schema.Null || g.ExternalID[i] == 0 {
			return -1, NoLaunch
		}
		return scanExternalID(t, i), NoLaunch
	}
	for p := range l.Len() {
		if l.Correlation[p] != corr || l.Key(p) != pid {
			continue
		}
		if o.ByProcess && launch >= 0 && l.PID[launch] != l.PID[p] {
			return -1, AmbiguousLaunch
		}
		launch = p
	}
	return launch, NoLaunch
}

// scanExternalID returns the only call with the External id of event i whose
// name fits the event's kind, or the only one at all where none fits.
func scanExternalID(t *schema.Trace, i int) int {
	var fit, any []int
	for p, id := range t.Launches.ExternalID {
		if id != t.GPU.ExternalID[i] {
			continue
		}
		any = append(any, p)
		if kindOfCall(t.Launches.Names[t.Launches.Name[p]]) == t.GPU.Kind[i] {
			fit = append(fit, p)
		}
	}
	if len(fit) > 0 {
		any = fit
	}
	if len(any) != 1 {
		return -1
	}
	return any[0]
}

func scanSpans(t *schema.Trace, launch int, wide bool) (ref schema.EntityRef, state State) {
	l := &t.Launches
	pid, tid, tick := l.PID[launch], l.TID[launch], l.Tick[launch]
	if pid == schema.Null {
		return ref, None
	}
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.ProcessWide != wide || s.PID != pid || !wide && (s.TID != tid || tid == schema.Null) ||
			tick < s.Start || tick >= s.End {
			continue
		}
		if state == One && s.Ref != ref {
			return ref, Ambiguous
		}
		ref, state = s.Ref, One
	}
	return ref, state
}
