package execlog

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzRead reads a log with arbitrary segments: what cannot be read is noted,
// and never more than there are lines.
func FuzzRead(f *testing.F) {
	const head = `{"format":"` + format + `","epoch":"worker-17-1",`
	for _, s := range []string{
		head + `"seq":0,"kind":"hello","host":"h","cuda_ordinal":0,"device_uuid":"GPU-1","clock":{"wall_ns":5}}` + "\n" + head + `"seq":1,"kind":"heartbeat","wall_ns":9}` + "\n",
		head + `"seq":9223372036854775807,"kind":"goodbye","wall_ns":9223372036854775807}` + "\n" + head + `"seq":9223372036854775806,"kind":"x"}` + "\n", "\x00\n[]\nnull\n", `{"seq":-1}` + "\n" + `{"seq":"1"}`,
	} {
		f.Add([]byte(s), []byte(s))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if len(first)+len(second) > 1<<14 {
			t.Skip()
		}
		root := t.TempDir()
		dir := filepath.Join(root, "host", "worker-17-1")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string][]byte{"000000.jsonl": first, "000001.jsonl.part": second} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l, err := Read(root)
		if err != nil {
			t.Fatal(err)
		}
		lines := 2
		for _, b := range append(first, second...) {
			if b == '\n' {
				lines++
			}
		}
		if len(l.Workers) != 1 || l.Workers[0].PID != 17 || l.Bad > lines || len(l.Notes) > maxNotes {
			t.Fatalf("%+v", l)
		}
		w := l.Workers[0]
		if w.covers(5, 6) && (w.StartedNS.OK && w.StartedNS.V > 5 || w.SaidGoodbye && w.LastSeenNS.OK && w.LastSeenNS.V < 6) {
			t.Fatalf("%+v", w)
		}
	})
}
