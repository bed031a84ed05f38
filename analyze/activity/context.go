package activity

import (
	"cmp"
	"strconv"

	"tracelake/schema"
)

// appendContext appends the context of a record: all of the reference's keys.
func (r *Result) appendContext(dst []byte, rec *Record) []byte {
	t := r.trace
	text := func(key, v string) {
		dst = append(append(append(dst, '"'), key...), `":`...)
		dst = append(appendOpt(dst, v), ',')
	}
	integer := func(key string, v schema.Opt[int64]) {
		dst = append(append(append(dst, '"'), key...), `":`...)
		dst = append(r.appendOptNumber(dst, v), ',')
	}
	engine := ""
	if t.EngineVersion.V != "" {
		engine = "vllm"
	}
	dst = append(dst, '{')
	text("run_id", r.opt.RunID)
	text("session_id", r.opt.SessionID)
	text("producer_id", ProducerID)
	text("source", t.Source)
	text("clock_domain", t.Source+":"+cmp.Or(t.Host.V, "unknown-host")+":"+r.key)
	text("clock_kind", "device")
	text("collection_mode", "imported")
	text("provenance", "observed")
	text("source_version", cmp.Or(r.opt.SourceVersion, ReferenceVersion))
	text("engine", engine)
	text("engine_version", t.EngineVersion.V)
	text("backend", "cupti")
	text("backend_version", t.CUPTIVersion.V)
	text("host", t.Host.V)
	integer("pid", rec.PID)
	text("device_uuid", rec.DeviceUUID)
	dst = append(dst, `"rank":`...)
	dst = append(r.appendHeader(dst, "rank", t.Rank), `,"local_rank":null,"world_size":`...)
	return append(r.appendHeader(dst, "world_size", t.WorldSize), '}')
}

// appendHeader appends an integer of the header, which may be beyond int64.
func (r *Result) appendHeader(dst []byte, key string, v schema.Opt[int64]) []byte {
	if odd, ok := r.trace.Odd[key]; ok {
		return append(dst, odd.JSON...)
	}
	if !v.OK {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, v.V, 10)
}

// appendMetadata appends what a record says about its events.
func (r *Result) appendMetadata(dst []byte, rec *Record) []byte {
	dst = append(dst, `{"event_count":`...)
	dst = strconv.AppendInt(dst, rec.EventCount, 10)
	if rec.Excluded > 0 {
		dst = append(dst, `,"excluded_events":`...)
		dst = strconv.AppendInt(dst, rec.Excluded, 10)
	}
	dst = append(dst, `,"summed_duration_ns":`...)
	dst = strconv.AppendInt(dst, rec.SummedNS, 10)
	dst = append(dst, `,"first_name":`...)
	if rec.Nameless {
		dst = append(dst, "null"...)
	} else {
		dst = appendText(dst, rec.FirstName)
	}
	dst = append(dst, `,"device_index":`...)
	dst = r.appendOptNumber(dst, rec.Device)
	if rec.LaunchAPI.OK {
		dst = append(dst, `,"launch_api":`...)
		dst = appendText(dst, rec.LaunchAPI.V)
	}
	if reason := rec.Reason.String(); reason != "" {
		dst = append(dst, `,"unresolved_reason":"`...)
		dst = append(append(dst, reason...), '"')
	}
	if len(rec.Streams) > 1 {
		dst = append(dst, `,"streams":[`...)
		for i, s := range rec.Streams {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = r.appendNumber(dst, s)
		}
		dst = append(dst, ']')
	}
	if len(rec.Intervals) > 0 {
		dst = append(dst, `,"intervals":[`...)
		for i, v := range rec.Intervals {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendInt(append(dst, '['), subSat(v.Start, rec.StartNS.V), 10)
			dst = strconv.AppendInt(append(dst, ','), v.Len(), 10)
			dst = append(dst, ']')
		}
		dst = append(dst, `],"busy_ns":`...)
		dst = strconv.AppendInt(dst, rec.BusyNS, 10)
	}
	return append(dst, '}')
}
