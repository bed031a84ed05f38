package kineto

import (
	"bytes"
	"encoding/json"
	"maps"
	"sort"
	"strconv"
	"strings"

	"tracelake/schema"
)

// Header is what a trace says about itself outside its event array.
type Header struct {
	BaseNS        schema.Opt[int64] // baseTimeNanoseconds
	Host          schema.Opt[string]
	TraceID       schema.Opt[string]
	Rank          schema.Opt[int64]
	WorldSize     schema.Opt[int64]
	Backend       schema.Opt[string] // of distributedInfo
	ProcessGroups schema.Opt[string] // pg_config as compact JSON
	VLLMVersion   schema.Opt[string]
	CUPTIVersion  schema.Opt[string]
	CUDARuntime   schema.Opt[string]
	CUDADriver    schema.Opt[string]
	HIPRuntime    schema.Opt[string]
	TraceName     schema.Opt[string]
	Devices       []Device
	Rest          map[string]json.RawMessage // keys without a field, compact
}

// Device is an entry of deviceProperties.
type Device struct {
	Ordinal  schema.Opt[int64]
	Name     schema.Opt[string]
	UUID     schema.Opt[string]
	Memory   schema.Opt[int64] // bytes
	SMs      schema.Opt[int64]
	Major    schema.Opt[int64]
	Minor    schema.Opt[int64]
	WarpSize schema.Opt[int64]
	Rest     string // other properties as compact JSON, "" for none
}

// headerText collects the top-level keys of a trace as they stand in the text,
// before and after the event array. Of equal keys the last one counts.
type headerText struct {
	array  bool // the trace is a bare array
	raw    map[string][]byte
	order  []string
	notes  []note
	events int  // event arrays seen
	other  bool // the last value of traceEvents is no array
	sep    separator
}

// separator says what stands before the next member of the header.
type separator uint8

const (
	sepNone   separator = iota // the opening brace
	sepMember                  // a member
	sepComma                   // a comma
)

func (h *headerText) put(key string, val []byte, offset int64) {
	v, f := appendCompact(nil, val)
	if f == flawControl {
		h.flaws(appendFlaws(nil, f, int(offset)))
	} else if f != 0 {
		h.note(schema.BrokenHeader, offset, "value of "+quoteShort([]byte(key))+" is not JSON and was mended")
	}
	if _, ok := h.raw[key]; !ok {
		h.order = append(h.order, key)
	}
	h.raw[key] = v
}

func (h *headerText) note(code schema.Code, offset int64, message string) {
	if len(h.notes) < maxHeaderNotes {
		h.notes = append(h.notes, note{code: code, offset: offset, member: schema.Null, message: message})
	}
}

func (h *headerText) flaws(notes []note) {
	for _, n := range notes {
		h.note(n.code, n.offset, n.message)
	}
}

const eventsKey = "traceEvents"

// start reads from the first byte of the text to the event array. It returns
// the position behind the opening bracket, or short where more text is needed.
// skip is how many event arrays to pass over.
func (h *headerText) start(b []byte, final bool, skip int) (int, error) {
	*h = headerText{raw: map[string][]byte{}}
	end := len(b) - pad
	i := skipSpace(b, 0, end)
	if i >= end {
		return h.cut(final, 0)
	}
	switch b[i] {
	case '[':
		h.array = true
		h.events = 1
		return i + 1, nil
	case '{':
	default:
		if end-i < 512 && !final {
			return short, nil // more text tells better what it is
		}
		return 0, notJSON(b[i:end], int64(i))
	}
	return h.members(b, i+1, end, 0, final, skip)
}

// members reads top-level members up to an event array or the closing brace,
// behind which it returns a position. base is the offset of b in the text.
func (h *headerText) members(b []byte, i, end int, base int64, final bool, skip int) (int, error) {
	for {
		i = skipSpace(b, i, end)
		if i >= end {
			return h.cut(final, base+int64(i))
		}
		if b[i] == ',' {
			if h.sep != sepMember {
				h.note(schema.TrailingComma, base+int64(i), "comma without a member of the header before it")
			}
			h.sep = sepComma
			i++
			continue
		}
		if b[i] == '}' {
			if h.sep == sepComma {
				h.note(schema.TrailingComma, base+int64(i), "comma behind the last member of the header")
			}
			return i + 1, nil
		}
		if b[i] != '"' {
			return h.lost(b, i, end, base, final)
		}
		q, escaped := stringEnd(b, i+1, end)
		if q < 0 {
			return h.cut(final, base+int64(end))
		}
		key := b[i+1 : q]
		var f flaw
		if escaped || !clean(key) {
			key, f = unescape(nil, key)
		}
		s := i
		i = skipSpace(b, q+1, end)
		if i < end && b[i] != ':' {
			return h.lost(b, s, end, base, final)
		}
		i = skipSpace(b, i+1, end)
		if i >= end {
			return h.cut(final, base+int64(i))
		}
		if h.sep == sepMember {
			h.note(schema.MissingComma, base+int64(s), "no comma before a member of the header")
		}
		h.sep = sepMember
		h.flaws(appendFlaws(nil, f, int(base)+s))
		if string(key) == eventsKey {
			if b[i] == '[' {
				h.events, h.other = h.events+1, false
				if h.events > skip {
					return i + 1, nil
				}
			} else {
				h.other = true
			}
		}
		e := skipValue(b, i, end)
		switch e {
		case short:
			return h.cut(final, base+int64(i))
		case deep:
			return 0, rejectAt(base+int64(i), "the value of %s is nested deeper than %d", quoteShort(key), maxDepth)
		case bad:
			return h.lost(b, s, end, base, final)
		}
		// A string that ends early leaves something that is no separator.
		if n := skipSpace(b, e, end); n < end && b[n] != ',' && b[n] != '}' {
			return h.lost(b, s, end, base, final)
		}
		if string(key) == eventsKey { // events that do not count
			h.flaws(flawsOf(b[i:e], int(base)+i))
		} else {
			h.put(string(key), b[i:e], base+int64(i))
		}
		i = e
	}
}

func (h *headerText) cut(final bool, off int64) (int, error) {
	if !final {
		return short, nil
	}
	return 0, &cutError{off}
}

// cutError says that the text ends within the header, or, at 0, before it.
type cutError struct{ off int64 }

func (e *cutError) Error() string { return "text ends at byte " + strconv.FormatInt(e.off, 10) }

// lost goes on behind a member that cannot be read: at the event array or the
// next member that starts on a line of its own.
func (h *headerText) lost(b []byte, i, end int, base int64, final bool) (int, error) {
	marker := []byte(`"` + eventsKey + `"`)
	if h.events == 0 {
		for from := i; ; {
			k := bytes.Index(b[from:end], marker)
			if k < 0 {
				break
			}
			from += k
			j := skipSpace(b, from+len(marker), end)
			if j < end && b[j] == ':' {
				if j = skipSpace(b, j+1, end); j < end && b[j] == '[' {
					h.note(schema.BrokenHeader, base+int64(i), "header could not be read from here to "+eventsKey)
					h.events, h.sep = 1, sepMember
					return j + 1, nil
				}
			}
			from += len(marker)
		}
		if !final {
			return short, nil
		}
		return 0, rejectAt(base+int64(i), "not JSON near %s", quoteShort(b[i:min(end, i+24)]))
	}
	if !final {
		return short, nil
	}
	// Behind the events: take what can be taken line by line.
	h.note(schema.BrokenHeader, base+int64(i), "text behind the events is not JSON near "+quoteShort(b[i:min(end, i+24)]))
	for {
		k := bytes.IndexByte(b[i:end], '\n')
		if k < 0 {
			return end, nil
		}
		i = skipSpace(b, i+k, end)
		if !topKeyAt(b, i, end) {
			continue
		}
		q, _ := stringEnd(b, i+1, end)
		v := skipSpace(b, skipSpace(b, q+1, end)+1, end)
		if e := skipValue(b, v, end); e > 0 && string(b[i+1:q]) != eventsKey {
			h.put(string(toValid(b[i+1:q])), b[v:e], base+int64(v))
			i = e - 1
		}
	}
}

// parse interprets the collected keys.
func (h *headerText) parse() Header {
	out := Header{Rest: map[string]json.RawMessage{}}
	for _, k := range h.order {
		v := h.raw[k]
		switch k {
		case "baseTimeNanoseconds":
			var exact bool
			if out.BaseNS, exact = jsonWhole(v); !exact {
				out.Rest[k] = v
			}
		case "host_name":
			out.Host = jsonText(v)
		case "trace_id":
			out.TraceID = jsonText(v)
		case "vllm_version":
			out.VLLMVersion = jsonText(v)
		case "cupti_version":
			out.CUPTIVersion = jsonText(v)
		case "cuda_runtime_version":
			out.CUDARuntime = jsonText(v)
		case "cuda_driver_version":
			out.CUDADriver = jsonText(v)
		case "hip_runtime_version":
			out.HIPRuntime = jsonText(v)
		case "traceName":
			out.TraceName = jsonText(v)
		case "distributedInfo":
			h.distributed(v, &out)
		case "deviceProperties", "computeProperties":
			var list, unnumbered []json.RawMessage
			if json.Unmarshal(v, &list) != nil {
				out.Rest[k] = v
			}
			for _, d := range list {
				if p := parseDevice(d); p.Ordinal.OK {
					out.Devices = append(out.Devices, p)
				} else {
					unnumbered = append(unnumbered, d)
				}
			}
			if unnumbered != nil {
				out.Rest[k] = mustJSONList(unnumbered)
			}
		default:
			out.Rest[k] = v
		}
	}
	return out
}

func (h *headerText) distributed(v []byte, out *Header) {
	var m map[string]json.RawMessage
	if json.Unmarshal(v, &m) != nil {
		out.Rest["distributedInfo"] = v
		return
	}
	var exact bool
	if out.Rank, exact = jsonWhole(m["rank"]); out.Rank.OK && out.Rank.V < 0 {
		out.Rank = schema.Opt[int64]{}
	} else if exact {
		delete(m, "rank")
	}
	if out.WorldSize, exact = jsonWhole(m["world_size"]); out.WorldSize.OK && out.WorldSize.V <= 0 {
		out.WorldSize = schema.Opt[int64]{}
	} else if exact {
		delete(m, "world_size")
	}
	out.Backend = jsonText(m["backend"])
	delete(m, "backend")
	if pg := m["pg_config"]; pg != nil {
		out.ProcessGroups = schema.Some(string(pg))
		delete(m, "pg_config")
		var list []json.RawMessage
		if n, ok := jsonInt(m["pg_count"]); ok && json.Unmarshal(pg, &list) == nil && n == int64(len(list)) {
			delete(m, "pg_count") // says nothing new
		}
	}
	if len(m) > 0 {
		out.Rest["distributedInfo"] = mustJSON(m)
	}
}

func parseDevice(raw []byte) (d Device) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		d.Rest = string(raw)
		return d
	}
	take := func(dst *schema.Opt[int64], keys ...string) {
		for _, k := range keys {
			if n, ok := jsonInt(m[k]); ok {
				*dst = schema.Some(n)
				delete(m, k)
				return
			}
		}
	}
	take(&d.Ordinal, "id")
	take(&d.Memory, "totalGlobalMem", "maxMemAllocSize")
	take(&d.SMs, "numSms", "maxComputeUnits")
	take(&d.Major, "computeMajor", "major")
	take(&d.Minor, "computeMinor", "minor")
	take(&d.WarpSize, "warpSize")
	if d.Name = jsonText(m["name"]); d.Name.OK {
		delete(m, "name")
	}
	if d.UUID = jsonText(m["uuid"]); d.UUID.OK {
		delete(m, "uuid")
	}
	if len(m) > 0 {
		d.Rest = string(mustJSON(m))
	}
	return d
}

// RestJSON returns the keys of the header without a field of their own, and
// the trace name, as a JSON object; "" where there are none.
func (h *Header) RestJSON() string {
	m := maps.Clone(h.Rest)
	if h.TraceName.OK {
		m["traceName"] = appendQuoted(nil, []byte(h.TraceName.V))
	}
	if len(m) == 0 {
		return ""
	}
	return string(mustJSON(m))
}

// mustJSON writes a map with sorted keys.
func mustJSON(m map[string]json.RawMessage) []byte {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	o := []byte{'{'}
	for i, k := range keys {
		if i > 0 {
			o = append(o, ',')
		}
		o = append(appendQuoted(o, []byte(k)), ':')
		o = append(o, m[k]...)
	}
	return append(o, '}')
}

func mustJSONList(list []json.RawMessage) []byte {
	o := []byte{'['}
	for i, v := range list {
		if i > 0 {
			o = append(o, ',')
		}
		o = append(o, v...)
	}
	return append(o, ']')
}

// jsonInt reads a whole number, also one that is written as text.
func jsonInt(v []byte) (int64, bool) { return textInt(numberText(v)) }

// jsonWhole reads a whole number and drops a fraction. exact is false where the result
// does not tell all that the value said.
func jsonWhole(v []byte) (n schema.Opt[int64], exact bool) {
	t := numberText(v)
	if n, ok := textInt(t); ok {
		return schema.Some(n), true
	}
	if i := strings.IndexByte(t, '.'); i > 0 && !strings.ContainsAny(t, "eE") {
		if n, ok := textInt(t[:i]); ok {
			return schema.Some(n), false
		}
	}
	return n, len(v) == 0 || string(v) == "null"
}

// numberText returns the spelling of a number, escaped or not.
func numberText(v []byte) string {
	if len(v) == 0 || v[0] == '{' || v[0] == '[' || string(v) == "null" {
		return ""
	}
	return strings.TrimSpace(jsonText(v).V)
}

func textInt(t string) (int64, bool) {
	if t == "" || len(t) > 64 {
		return 0, false
	}
	return wholeNumber(t)
}

// jsonText reads text, or the spelling of another plain value.
func jsonText(v []byte) schema.Opt[string] {
	if len(v) == 0 || string(v) == "null" {
		return schema.Opt[string]{}
	}
	if v[0] == '"' {
		t, _ := unescape(nil, v[1:len(v)-1])
		return schema.Some(string(t))
	}
	return schema.Some(string(v))
}

// notJSON explains what a file is that does not start like JSON.
func notJSON(b []byte, off int64) error {
	head := bytes.ToLower(b[:min(len(b), 256)])
	switch {
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return reject("a Git LFS pointer and not the file itself: run git lfs pull")
	case bytes.HasPrefix(head, []byte("<!doctype html")), bytes.HasPrefix(head, []byte("<html")), head[0] == '<':
		return reject("HTML or XML and not a trace: a saved web or error page")
	case bytes.HasPrefix(head, []byte("sqlite format 3")):
		return reject("a SQLite database and not JSON")
	case bytes.HasPrefix(head, []byte("par1")), bytes.HasPrefix(head, []byte("arrow1")):
		return reject("a Parquet or Arrow file and not JSON")
	case bytes.HasPrefix(head, []byte("pk\x03\x04")):
		return reject("a zip archive: unpack it first")
	case len(b) > 262 && bytes.Equal(b[257:262], []byte("ustar")):
		return reject("a tar archive: unpack it first")
	}
	return rejectAt(off, "not JSON: the text starts with %s", quoteShort(b[:min(len(b), 16)]))
}
