package activity

import (
	"io"
	"iter"
	"slices"
	"strconv"

	"tracelake/analyze/interval"
	"tracelake/analyze/link"
	"tracelake/schema"
)

// ProducerID names the producer of every record, as in the reference.
const ProducerID = "stormlog.trace.kineto"

// Record is one activity record.
type Record struct {
	Number      int64 // from 1
	Kind        schema.Kind
	EventCount  int64
	Excluded    int64 // events whose times count nowhere
	FirstName   string
	Nameless    bool // the first event has no name, not even an empty one
	Device      schema.Opt[int64]
	DeviceUUID  string // "" where unknown
	Stream      schema.Opt[int64]
	Streams     []int64 // distinct streams in order, where there are several
	Graph       schema.Opt[int64]
	Correlation schema.Opt[int64]
	PID         schema.Opt[int64] // process of the launch, else of the event
	LaunchAPI   schema.Opt[string]
	Iteration   schema.Opt[schema.EntityRef]
	Reason      link.Reason
	StartNS     schema.Opt[int64]
	EndNS       schema.Opt[int64]
	BusyNS      int64
	SummedNS    int64
	// Intervals is the union of the events as absolute times, nil for one event.
	Intervals []interval.Interval
}

// Len returns the number of records.
func (r *Result) Len() int { return r.Groups.Len() }

// All yields the records in order.
func (r *Result) All() iter.Seq2[int, Record] {
	return func(yield func(int, Record) bool) {
		for i := range r.Len() {
			if !yield(i, r.Record(i)) {
				return
			}
		}
	}
}

// Record returns record i, from 0.
func (r *Result) Record(i int) Record {
	g, t := r.Groups, r.trace
	e, first := &t.GPU, g.First[i]
	rec := Record{
		Number: int64(i) + 1, Kind: e.Kind[first], EventCount: int64(len(g.Members(i))),
		FirstName: e.Names[e.Name[first]], Device: schema.OptInt(e.Device[first]),
		Stream: g.Stream(i), Graph: g.Graph(i), Correlation: schema.OptInt(e.Correlation[first]),
		PID: schema.OptInt(t.ProcessID(pidOf(e, first))), Reason: r.Links.Reason[first],
		StartNS: schema.OptInt(g.Start[i]), EndNS: schema.OptInt(g.End[i]),
		BusyNS: g.Busy[i], SummedNS: g.Summed[i], Intervals: g.Intervals(i),
	}
	rec.Nameless = t.NullName.OK && e.Name[first] == t.NullName.V
	if g.Excluded != nil {
		rec.Excluded = int64(g.Excluded[i])
	}
	if p := g.LaunchOf(i); p >= 0 {
		l := &t.Launches
		rec.PID = schema.OptInt(t.ProcessID(l.PID[p]))
		rec.LaunchAPI = schema.Some(l.Names[l.Name[p]])
	}
	if ref, ok := r.Links.Ref(int(first)); ok {
		rec.Iteration = schema.Some(ref)
	}
	if rec.DeviceUUID = textAt(e.UUID, e.Names, first); rec.DeviceUUID == "" {
		pid := schema.Null // so that it is not process 0
		if rec.PID.OK {
			pid = rec.PID.V
		}
		rec.DeviceUUID, _ = r.uuids.find(pid, e.Device[first])
	}
	if !rec.Stream.OK && rec.EventCount > 1 {
		rec.Streams = r.streams(g.Members(i))
	}
	if !r.opt.Compat {
		for _, id := range []*schema.Opt[int64]{&rec.Correlation, &rec.Stream, &rec.Graph} {
			if id.OK && id.V < 0 {
				*id = schema.Opt[int64]{} // no record can hold it
			}
		}
	}
	return rec
}

// streams returns the distinct known streams in order, or nil for fewer than two.
func (r *Result) streams(members []int32) []int64 {
	out := make([]int64, 0, len(members))
	for _, m := range members {
		if s := r.trace.GPU.Stream[m]; s != schema.Null {
			out = append(out, s)
		}
	}
	slices.Sort(out)
	if out = slices.Compact(out); len(out) < 2 {
		return nil
	}
	return out
}

// WriteJSONLines writes every record as one line of JSON.
func (r *Result) WriteJSONLines(w io.Writer) error {
	const chunk = 1 << 16
	var buf []byte
	for i := range r.Len() {
		buf = append(r.AppendRecord(buf, i), '\n')
		if len(buf) >= chunk || i == r.Len()-1 {
			if _, err := w.Write(buf); err != nil {
				return err
			}
			buf = buf[:0]
		}
	}
	return nil
}

// AppendRecord appends record i, from 0, as a JSON object with the fields of the
// reference.
func (r *Result) AppendRecord(dst []byte, i int) []byte {
	rec := r.Record(i)
	version := "2"
	if len(rec.Intervals) > 0 {
		version = "3" // busy intervals change what the span means
	}
	dst = append(dst, `{"schema_version":`...)
	dst = append(dst, version...)
	dst = append(dst, `,"event_type":"infer.activity_ref","context":`...)
	dst = r.appendContext(dst, &rec)
	id := r.key + "/" + strconv.FormatInt(rec.Number, 10)
	dst = append(dst, `,"event_id":`...)
	dst = appendText(dst, id)
	dst = append(dst, `,"metadata":`...)
	dst = r.appendMetadata(dst, &rec)
	dst = append(dst, `,"activity_ref":`...)
	dst = appendRef(dst, schema.EntityRef{Producer: ProducerID, ID: id})
	dst = append(dst, `,"activity_kind":"`...)
	dst = append(dst, rec.Kind.String()...)
	dst = append(dst, `","attribution_status":`...)
	if rec.Iteration.OK {
		dst = append(dst, `"linked","activity_domain":"gpu","iteration_ref":`...)
		dst = appendRef(dst, rec.Iteration.V)
	} else {
		dst = append(dst, `"unresolved","activity_domain":"gpu","iteration_ref":null`...)
	}
	dst = append(dst, `,"correlation_scope":null,"trace_attachment_id":`...)
	dst = appendOpt(dst, r.opt.AttachmentID)
	dst = append(dst, `,"runtime_correlation_id":null`...)
	for _, f := range []struct {
		key string
		v   schema.Opt[int64]
	}{
		{"cuda_correlation_id", rec.Correlation},
		{"stream_id", rec.Stream},
		{"graph_id", rec.Graph},
		{"start_ns", rec.StartNS},
		{"end_ns", rec.EndNS},
	} {
		dst = append(dst, `,"`...)
		dst = append(dst, f.key...)
		dst = append(dst, `":`...)
		dst = r.appendOptNumber(dst, f.v)
	}
	return append(dst, '}')
}

func appendRef(dst []byte, ref schema.EntityRef) []byte {
	dst = append(dst, `{"producer_id":`...)
	dst = appendText(dst, ref.Producer)
	dst = append(dst, `,"id":`...)
	return append(appendText(dst, ref.ID), '}')
}

func (r *Result) appendOptNumber(dst []byte, v schema.Opt[int64]) []byte {
	if !v.OK {
		return append(dst, "null"...)
	}
	return r.appendNumber(dst, v.V)
}
