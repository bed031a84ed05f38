package isolate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
)

// readEvents calls each for every event on r until it ends, and returns how
// many lines were none. A line over the limit is skipped, not kept.
func readEvents(r io.Reader, each func(Event)) (garbage int64) {
	br := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	long := false
	for {
		part, err := br.ReadSlice('\n')
		if len(line)+len(part) > maxEventLine {
			long, line = true, line[:0]
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if text := bytes.TrimSpace(line); long {
			garbage++
		} else if len(text) > 0 {
			var e Event
			if json.Unmarshal(text, &e) != nil || e.Event == "" {
				garbage++
			} else {
				if e.Event == "result" || e.Event == "start" {
					e.Raw = bytes.Clone(text)
				}
				each(e)
			}
		}
		if cap(line) > 64<<10 {
			line = nil
		}
		line, long = line[:0], false
		if err != nil {
			return garbage
		}
	}
}

// workerClasses are the failures that a worker may report; all else is a fault
// of the tracer.
var workerClasses = []string{
	OOMDevice, OOMHost, "unsupported", "missing_library", "model", Failed, "bad_request",
	"gated", "not_found", "network", "incomplete",
}

// parseResult reads a result event; one that breaks the protocol is none.
func parseResult(raw json.RawMessage) *Result {
	r := &Result{Raw: raw}
	if json.Unmarshal(raw, r) != nil {
		return nil
	}
	if r.OK {
		r.Error = nil
		return r
	}
	if r.Error == nil {
		r.Error = &Error{Message: "the worker failed and did not say why"}
	}
	if !slices.Contains(workerClasses, r.Error.Class) {
		r.Error.Class = Failed
	}
	r.Error.Message = clip(r.Error.Message, maxReason)
	r.Error.Traceback = clip(r.Error.Traceback, maxTraceback)
	return r
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + " …"
}
