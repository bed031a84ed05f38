package collected

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzIsTable tells tables by their first line, and traces by their name: what
// is a table can be read.
func FuzzIsTable(f *testing.F) {
	for _, s := range []string{userHeader, `{"table":"ops","columns":[]}`, `{"table":"x_a","columns":[{"name":"a","type":"int64"}]}` + "\n{}\n", "{}", "\x00\n", `{"table":"x_a","columns":[{"name":"a"}]}`} {
		f.Add(s)
	}
	file := filepath.Join(f.TempDir(), "t.jsonl")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if IsTraceName(text) && !strings.Contains(text, ".trace.json") {
			t.Fatalf("%q is no trace", text)
		}
		if !IsTable(file) {
			return
		}
		line, _, _ := strings.Cut(text, "\n")
		if h, err := parseHeader([]byte(line)); err != nil || h.Table == "" {
			t.Fatalf("%q: %+v, %v", line, h, err)
		}
	})
}

// FuzzReadJob reads the directory of a job whose status file holds arbitrary
// text: its tables and traces lie within it, and an error names a file of it.
func FuzzReadJob(f *testing.F) {
	for _, s := range []string{
		`{"schema":2,"tracer":"x","model":"m","state":"ok","tables":[{"name":"t","path":"t.jsonl","rows":1}],"artifacts":[{"path":"trace.json.gz","bytes":1}]}`,
		`{"artifacts":[{"path":"../outside.json"},{"path":"/etc/passwd"},{"path":"a/../../outside.json"}]}`,
		`{"key":{"tracer":7},"result":[],"job":null}`, `{}`, `null`, `[]`, "\x00", `{"tables":[{"path":"..\\x","rows":-1}]}`, `{"artifacts_unlisted":3}`,
	} {
		f.Add([]byte(s), "trace.json")
	}
	f.Fuzz(func(t *testing.T, status []byte, name string) {
		if len(status) > 1<<14 {
			t.Skip()
		}
		outer := t.TempDir()
		dir := filepath.Join(outer, "job")
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		files := []string{"trace.json.gz", "t.jsonl", "../outside.json"}
		if filepath.IsLocal(name) && filepath.Base(name) == name && len(name) < 200 && !strings.ContainsRune(name, 0) && name != StatusFile {
			files = append(files, name)
		}
		for _, n := range files {
			if err := os.WriteFile(filepath.Join(dir, n), []byte("{}"), 0o600); err != nil {
				t.Skip()
			}
		}
		if err := os.WriteFile(filepath.Join(dir, StatusFile), status, 0o600); err != nil {
			t.Fatal(err)
		}
		if !IsJob(dir) {
			t.Fatal("a directory with a status file is no job")
		}
		j, err := ReadJob(dir)
		if err != nil {
			if !strings.Contains(err.Error(), dir) {
				t.Fatalf("%v does not name a file", err)
			}
			return
		}
		inside := func(p string) {
			if rel, err := filepath.Rel(dir, p); err != nil || !filepath.IsLocal(rel) {
				t.Fatalf("%q lies outside of the job", p)
			}
		}
		for _, table := range j.Tables {
			inside(table.Path)
		}
		for _, trace := range j.Traces {
			inside(trace)
		}
	})
}
