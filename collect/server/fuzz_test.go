package server

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
		file := filepath.Join(t.TempDir(), "requests.jsonl")
		if err := os.WriteFile(file, line, 0o600); err != nil {
			t.Fatal(err)
		}
		if all, err := ReadRequests(file, model); err != nil && !strings.Contains(err.Error(), file) || err == nil && len(all) == 0 {
			t.Fatalf("%q: %v, %v", line, all, err)
		}
		if name := string(line); IsWorkerTrace(name) && !strings.Contains(name, ".json") {
			t.Fatalf("%q is no trace", name)
		}
		if c, err := NewControl(model, "", time.Second); err == nil && c == nil {
			t.Fatal("no address and no error")
		}
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
