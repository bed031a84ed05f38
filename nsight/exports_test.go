package nsight

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
)

// exportNames are synthetic exports of every form but SQLite.
var exportNames = []string{"e2026_pqtdir", "e2026_i64dict_pqtdir", "e2026_arwdir", "e2026_stream_arwdir", "e2026.arrows", "e2026.jsonl"}

// damagedExport copies an export and changes bytes of one of its files, most of
// them where lengths and offsets stand: at the start, at the end, and in groups
// of four.
func damagedExport(from, to string, seed uint64, changes, cut int) error {
	r := rand.New(rand.NewPCG(seed, 3))
	file := to
	if st, err := os.Stat(from); err != nil {
		return err
	} else if st.IsDir() {
		entries, err := os.ReadDir(from)
		if err != nil {
			return err
		}
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		hit := entries[r.IntN(len(entries))].Name()
		if r.IntN(2) == 0 { // most rows stand in few tables
			hit = []string{tableKernel, tableRuntime, tableNVTX, "StringIds"}[r.IntN(4)] + filepath.Ext(hit)
		}
		for _, e := range entries {
			abs, err := filepath.Abs(filepath.Join(from, e.Name()))
			if err == nil && e.Name() != hit {
				err = os.Symlink(abs, filepath.Join(to, e.Name()))
			}
			if err != nil {
				return err
			}
		}
		from, file = filepath.Join(from, hit), filepath.Join(to, hit)
	}
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	for range changes % 32 {
		at := r.IntN(len(b))
		switch r.IntN(4) {
		case 0:
			at = len(b) - 1 - r.IntN(min(len(b), 800))
		case 1:
			at = r.IntN(min(len(b), 800))
		}
		switch r.IntN(4) {
		case 0:
			b[at] ^= 1 << r.IntN(8)
		case 1:
			b[at] = byte(r.Uint32())
		case 2:
			for k := at; k < min(at+4, len(b)); k++ {
				b[k] = []byte{0, 0xff, 0x7f, 0x80}[r.IntN(4)]
			}
		default:
			copy(b[at:min(len(b), at+32)], b[r.IntN(len(b)):])
		}
	}
	return os.WriteFile(file, b[:max(0, len(b)-cut)], 0o600)
}

// checkRefusal reads an export: it is read, or refused with an error that
// names it.
func checkRefusal(t *testing.T, path string) (read bool) {
	t.Helper()
	_, err := Read(context.Background(), path, Options{Workers: 2})
	var r *schema.RejectedError
	if err != nil && !errors.As(err, &r) {
		t.Fatalf("%v is no refusal", err)
	}
	return err == nil
}

// FuzzExports reads Parquet, Arrow and JSON lines exports with bytes changed
// anywhere: a refusal is fine, a panic or a hang is not.
func FuzzExports(f *testing.F) {
	dir := synthetic(f)
	for i := range exportNames {
		f.Add(uint8(i), uint64(1), uint8(1), uint16(0))
		f.Add(uint8(i), uint64(2), uint8(9), uint16(100))
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64, changes uint8, cut uint16) {
		name := exportNames[int(which)%len(exportNames)]
		path := filepath.Join(t.TempDir(), name)
		if err := damagedExport(filepath.Join(dir, name), path, seed, int(changes), int(cut)); err != nil {
			t.Fatal(err)
		}
		checkRefusal(t, path)
	})
}

// TestDamagedExports is the fuzz test with fixed seeds.
func TestDamagedExports(t *testing.T) {
	dir := synthetic(t)
	for i, name := range exportNames {
		read := 0
		for seed := range uint64(25) {
			path := filepath.Join(t.TempDir(), fmt.Sprintf("%d_%s", seed, name))
			if err := damagedExport(filepath.Join(dir, name), path, seed*10+uint64(i), int(seed%9), int(seed%3)*10); err != nil {
				t.Fatal(err)
			}
			if checkRefusal(t, path) {
				read++
			}
		}
		if read == 25 {
			t.Errorf("%s: no damage was noticed", name)
		}
	}
}

// FuzzJSONLines reads arbitrary lines.
func FuzzJSONLines(f *testing.F) {
	lines := []string{
		`{"id": 1, "value": "k", "table": "StringIds"}`,
		`{"start": 10, "end": 20, "deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 3, "globalPid": 281479271677952, "shortName": 1, "demangledName": 1, "gridX": 1, "table": "CUPTI_ACTIVITY_KIND_KERNEL"}`,
		`{"start": 5, "end": 6, "eventClass": 0, "globalTid": 281479271677953, "correlationId": 3, "nameId": 1, "table": "CUPTI_ACTIVITY_KIND_RUNTIME"}`,
		`{"start": 1, "end": 30, "eventType": 59, "text": "step", "globalTid": 281479271677953, "table": "NVTX_EVENTS"}`,
		`{"table": "TARGET_INFO_GPU", "id": 0, "name": "H", "uuid": "u"}`,
	}
	f.Add([]byte(strings.Join(lines, "\n") + "\n"))
	for _, odd := range []string{`{"table":"StringIds","id":1e400,"value":7}`, `{"table":"StringIds"`, `{"table":""}`, `[]`, `{"table":"StringIds","table":"NVTX_EVENTS"}`, "{\"table\":\"StringIds\",\"value\":\"\xff\\ud800\",\"id\":-1}"} {
		f.Add([]byte(lines[0] + "\n" + odd + "\n" + lines[1]))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<16 {
			t.Skip()
		}
		path := filepath.Join(t.TempDir(), "x.json")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		kind, err := Identify(path)
		if err != nil || kind != Sniff(path) || kind != SniffHead(path, text[:min(len(text), HeadSize)]) {
			t.Fatalf("%v, %v, or %v", kind, err, Sniff(path))
		}
		if kind == JSONLines {
			checkRefusal(t, path)
		}
	})
}

// FuzzKindOfDir tells directories by the names of their files.
func FuzzKindOfDir(f *testing.F) {
	for _, s := range []string{"StringIds.parquet", "a/NVTX_EVENTS.arrow", "NVTX_EVENTS.arrows", "StringIds.", "x.parquet", ".parquet", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if k := KindOfDir(name); k != None && k != ParquetDir && k != ArrowDir {
			t.Fatalf("%q is %v", name, k)
		}
	})
}
