package server

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzRequest reads a line of a request file: what is read has a route and a
// body, and reads alike each time.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"prompt":"a"}`, `{"messages":[],"prompt":"b","input":"c"}`, `{"route":"/v1/x","body":{"model":"m"}}`, `{"route":"x","body":{}}`, `{"body":null}`, `null`, `[]`,
	} {
		f.Add([]byte(s), "m")
	}
	f.Fuzz(func(t *testing.T, line []byte, model string) {
		r, err := parseRequest(line, model)
		if err != nil {
			return
		}
		if r.Route == "" || r.Route[0] != '/' || !json.Valid(r.Body) || r.Body[0] != '{' {
			t.Fatalf("%q: %+v", line, r)
		}
		for range 3 {
			if again, err := parseRequest(line, model); err != nil || again.Route != r.Route || !bytes.Equal(again.Body, r.Body) {
				t.Fatalf("%q: %+v, then %+v, %v", line, r, again, err)
			}
		}
	})
}
