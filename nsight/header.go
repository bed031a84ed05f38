package nsight

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"tracelake/schema"
)

// Header is what a report says about itself. Only these keys are taken: the
// metadata tables also hold environments, arguments, paths and users.
type Header struct {
	UTC        schema.Opt[int64]  // session start, ns since the Unix epoch
	Host       schema.Opt[string] // display name of the target
	Normalized bool               // the exporter made all times absolute
	Product    string             // version of the exporter
	Schema     string             // version of the export's schema
	GraphMode  string             // how CUDA graphs were traced
	TimeShift  string
}

// JSON returns what has no column of its own as a JSON object, "" for nothing.
func (h *Header) JSON() string {
	m := map[string]string{}
	for k, v := range map[string]string{
		"EXPORT_PRODUCT_VERSION": h.Product, "EXPORT_SCHEMA_VERSION": h.Schema, "CUDA_GRAPH_TRACE_OPTIONS:MODE": h.GraphMode,
		"EXPORT_PARAM_TIME_SHIFT": h.TimeShift,
	} {
		if v != "" {
			m[k] = v
		}
	}
	if h.Normalized {
		m["EXPORT_PARAM_TIME_NORMALIZE"] = "true"
	}
	if len(m) == 0 {
		return ""
	}
	out, err := json.Marshal(m) // keys are sorted
	if err != nil {
		return ""
	}
	return string(out)
}

// Keys of the metadata tables that are read.
var (
	exportKeys  = []string{"EXPORT_PRODUCT_VERSION", "EXPORT_SCHEMA_VERSION", "EXPORT_PARAM_TIME_NORMALIZE", "EXPORT_PARAM_TIME_SHIFT"}
	captureKeys = []string{"DEVICE_DISPLAY_NAME", "CUDA_GRAPH_TRACE_OPTIONS:MODE"}
)

func (r *reader) header(ctx context.Context) error {
	h := &r.res.Header
	err := r.scan(ctx, "TARGET_INFO_SESSION_START_TIME", ints("utcEpochNs"), func(b *batch) error {
		for i := range b.n {
			if v := cell(b, 0, i); v != schema.Null && !h.UTC.OK {
				h.UTC = schema.Some(v)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	values := map[string]string{}
	for _, t := range []struct {
		table string
		keys  []string
	}{{"META_DATA_EXPORT", exportKeys}, {"EXPORT_META_DATA", exportKeys}, {"META_DATA_CAPTURE", captureKeys}} {
		if err := r.keyValues(ctx, t.table, t.keys, values); err != nil {
			return err
		}
	}
	if v, ok := values["DEVICE_DISPLAY_NAME"]; ok && v != "" {
		h.Host = schema.Some(v)
	}
	h.Product, h.Schema = values["EXPORT_PRODUCT_VERSION"], values["EXPORT_SCHEMA_VERSION"]
	h.GraphMode = values["CUDA_GRAPH_TRACE_OPTIONS:MODE"]
	if s := values["EXPORT_PARAM_TIME_SHIFT"]; s != "0" {
		h.TimeShift = s
	}
	h.Normalized = strings.EqualFold(values["EXPORT_PARAM_TIME_NORMALIZE"], "true") || values["EXPORT_PARAM_TIME_NORMALIZE"] == "1"
	r.res.Absolute = h.Normalized
	if h.UTC.OK && !h.Normalized {
		r.res.BaseNS = h.UTC.V
	}
	r.hash("header "+h.JSON()+" "+h.Host.V+" "+strconv.FormatInt(h.UTC.V, 10), 0)
	return nil
}

// keyValues reads the given keys of a table of names and values; the first row
// of a key counts.
func (r *reader) keyValues(ctx context.Context, table string, keys []string, out map[string]string) error {
	return r.scan(ctx, table, []want{{"name", text}, {"value", text}}, func(b *batch) error {
		for i := range b.n {
			name, value := cell(b, 0, i), cell(b, 1, i)
			if name == schema.Null || value == schema.Null || !slices.Contains(keys, b.texts.list[name]) {
				continue
			}
			if _, ok := out[b.texts.list[name]]; !ok {
				out[b.texts.list[name]] = shorten(b.texts.list[value])
			}
		}
		return nil
	})
}
