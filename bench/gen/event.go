package main

import "strconv"

// events is a run of events as text. Every event ends with a comma; the last
// event of the trace is written by footer.
type events struct {
	buf   []byte
	lines bool // 2026: one key on a line
	count map[string]int
}

// add appends the parts of an event. An int64 is a number as it stands, nanos
// are written as microseconds with three decimals.
func (e *events) add(parts ...any) {
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			e.buf = append(e.buf, p...)
		case int64:
			e.buf = strconv.AppendInt(e.buf, p, 10)
		case int:
			e.buf = strconv.AppendInt(e.buf, int64(p), 10)
		case nanos:
			e.buf = strconv.AppendInt(e.buf, int64(p)/1000, 10)
			e.buf = append(e.buf, '.', byte('0'+p/100%10), byte('0'+p/10%10), byte('0'+p%10))
		default:
			panic("BUG: unknown part of an event")
		}
	}
}

// nanos is a time or a duration in ns, never negative.
type nanos int64

// complete appends a duration event; args is the inside of the object.
func (e *events) complete(cat, name string, pid, tid int, start, dur nanos, args ...any) {
	e.count[cat]++
	if e.lines {
		e.add("\n  {\n    \"ph\": \"X\",\n    \"cat\": \"", cat, "\",\n    \"name\": \"", name, "\",\n    \"pid\": ", pid,
			",\n    \"tid\": ", tid, ",\n    \"ts\": ", start, ",\n    \"dur\": ", dur, "\n    ")
	} else {
		e.add("\n  {\n    \"ph\": \"X\", \"cat\": \"", cat, "\", \"name\": \"", name, "\", \"pid\": ", pid,
			", \"tid\": ", tid, ",\n    \"ts\": ", start, ", \"dur\": ", dur)
	}
	if len(args) > 0 {
		e.add(",\n    \"args\": {\n      ")
		e.add(args...)
		e.add("\n    }")
	}
	e.add("\n  },")
}

// flow appends one end of an arrow.
func (e *events) flow(ph, cat string, id int64, pid, tid int, at nanos) {
	e.count[cat]++
	bind := ""
	if ph == "f" {
		bind = ", \"bp\": \"e\""
	}
	if e.lines {
		if ph == "f" {
			bind = ",\n    \"bp\": \"e\""
		}
		e.add("\n  {\n    \"ph\": \"", ph, "\",\n    \"id\": ", id, ",\n    \"pid\": ", pid, ",\n    \"tid\": ", tid,
			",\n    \"ts\": ", at, ",\n    \"cat\": \"", cat, "\",\n    \"name\": \"", cat, "\"", bind, "\n    \n  },")
		return
	}
	e.add("\n  {\n    \"ph\": \"", ph, "\", \"id\": ", id, ", \"pid\": ", pid, ", \"tid\": ", tid, ", \"ts\": ", at,
		",\n    \"cat\": \"", cat, "\", \"name\": \"", cat, "\"", bind, "\n  },")
}

// instant appends a thread-scoped instant event.
func (e *events) instant(cat, name string, pid, tid int, at nanos, args ...any) {
	e.count[cat]++
	if e.lines {
		e.add("\n  {\n    \"ph\": \"i\",\n    \n    \"cat\": \"", cat, "\",\n    \"s\": \"t\",\n    \"name\": \"", name,
			"\",\n    \"pid\": ", pid, ",\n    \"tid\": ", tid, ",\n    \"ts\": ", at, "\n    ,\n    \"args\": {\n      ")
	} else {
		e.add("\n  {\n    \"ph\": \"i\", \"cat\": \"", cat, "\", \"s\": \"t\", \"name\": \"", name,
			"\",\n    \"pid\": ", pid, ", \"tid\": ", tid, ",\n    \"ts\": ", at, ",\n    \"args\": {\n      ")
	}
	e.add(args...)
	e.add("\n    }\n  },")
}

// metadata appends a metadata event; value is JSON.
func (e *events) metadata(name, key, value string, pid, tid int, at nanos) {
	e.count["M"]++
	if e.lines {
		e.add("\n  {\n    \"ph\": \"M\",\n    \"name\": \"", name, "\",\n    \"ts\": ", at, ",\n    \"pid\": ", pid,
			",\n    \"tid\": ", tid, ",\n    \"args\": {\n      \"", key, "\": ", value, "\n    }\n  },")
		return
	}
	e.add("\n  {\n    \"name\": \"", name, "\", \"ph\": \"M\", \"ts\": ", at, ", \"pid\": ", pid, ", \"tid\": ", tid,
		",\n    \"args\": {\n      \"", key, "\": ", value, "\n    }\n  },")
}
