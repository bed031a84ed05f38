package nsight

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/nsight/btree"
	"tracelake/schema"
)

// TestTruncated cuts a report at every page and within pages: a part of it
// must never look whole.
func TestTruncated(t *testing.T) {
	whole, err := os.ReadFile(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.sqlite")
	for n := 0; n < len(whole); n += 2048 {
		if err := os.WriteFile(path, whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		for _, library := range []bool{false, true} {
			why := refused(t, path, Options{Library: library})
			if n >= 4096 && !strings.Contains(why, fmt.Sprintf("it holds %d of %d pages", n/4096, len(whole)/4096)) {
				t.Fatalf("%d bytes: %q", n, why)
			}
		}
	}
}

// TestDamagedPages overwrites each page in several ways: what is imported is
// the whole report, or the page is named.
func TestDamagedPages(t *testing.T) {
	whole, err := os.ReadFile(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	want := digestOf(t, demoReport, Options{})
	path := filepath.Join(t.TempDir(), "damaged.sqlite")
	refusals := 0
	for page := 1; page <= len(whole)/4096; page++ {
		for way, damage := range map[string]func(p []byte){
			"zeros":     func(p []byte) { clear(p) },
			"ones":      func(p []byte) { fill(p, 0xff) },
			"half":      func(p []byte) { clear(p[:2048]) },
			"no header": func(p []byte) { clear(p[:8]) },
		} {
			b := append([]byte(nil), whole...)
			at := (page - 1) * 4096
			if page == 1 {
				at += 100
			}
			damage(b[at : page*4096])
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			res, err := Read(context.Background(), path, Options{Workers: 2})
			if err == nil {
				if res.Digest != want {
					t.Errorf("page %d, %s: other rows than those of the report", page, way)
				}
				continue
			}
			var r *schema.RejectedError
			if !errors.As(err, &r) {
				t.Fatalf("page %d, %s: %v is no refusal", page, way, err)
			}
			refusals++
		}
	}
	if refusals < len(whole)/4096*2 {
		t.Errorf("only %d refusals of %d pages", refusals, len(whole)/4096)
	}
}

func fill(p []byte, v byte) {
	for i := range p {
		p[i] = v
	}
}

// TestDamageNamesPage checks what a refusal says.
func TestDamageNamesPage(t *testing.T) {
	whole, err := os.ReadFile(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged.sqlite")
	fast, err := openSQLite(demoReport, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer fast.close()
	clear(whole[8*4096 : 9*4096]) // pages 2 to 10 are the roots of the tables
	if err := os.WriteFile(path, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if why := refused(t, path, Options{}); !strings.Contains(why, "damaged at page 9: no") || !strings.Contains(why, "of table") {
		t.Error(why)
	}
}

// TestPanics: what panics over rows of an export, wherever it runs, ends the
// import of that export and nothing else.
func TestPanics(t *testing.T) {
	file, err := os.Open(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	f, err := btree.Open(file, st.Size())
	if err != nil {
		t.Fatal(err)
	}
	gate := make(chan struct{}, 1)
	rows, kernels := 0, f.Table(tableKernel)
	err = btree.Scan(t.Context(), f, kernels, 2, gate, func() int { return 0 },
		func(int, *btree.Record) error {
			if rows++; rows > 10 {
				panic("row")
			}
			return nil
		}, func(int, int64) error { return nil })
	var c *btree.CorruptError
	if !errors.As(err, &c) || c.Page == 0 || !strings.Contains(err.Error(), tableKernel) {
		t.Errorf("a row: %v", err)
	}
	work := tasks{limit: make(chan struct{}, 1), gate: gate}
	done := false
	work.run(func() error { panic("block") })
	work.run(func() error { done = true; return nil })
	var r *schema.RejectedError
	if err := work.wait(); !errors.As(err, &r) || !done {
		t.Errorf("a block: %v", err)
	}
	if err := guarded("a/report.arrows", func() error { panic("library") }); !errors.As(err, &r) || !strings.HasPrefix(r.Reason, "report.arrows is damaged") {
		t.Errorf("a library: %v", err)
	}
	if len(gate) > 0 {
		t.Error("a token was kept")
	}
}

// TestCircles: records that claim more than the file holds, from rests that go in
// circles, are refused before they are put together again and again.
func TestCircles(t *testing.T) {
	path := reportOf(t, "PRAGMA page_size=512", "CREATE TABLE META_DATA_CAPTURE (name TEXT)",
		"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < 500) INSERT INTO META_DATA_CAPTURE SELECT printf('%.600c', 'x') FROM n", "VACUUM")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	circles := 0
	for page := 1; page <= len(b)/512; page++ {
		if p := b[(page-1)*512 : page*512]; binary.BigEndian.Uint32(p) == 0 && bytes.Count(p, []byte("x")) == 508 {
			binary.BigEndian.PutUint32(p, uint32(page))
			circles++
		}
	}
	// Records of 603 bytes become those of 7715, of which as much stands on the page.
	records := 0
	for i := 4; i+3 < len(b); i++ {
		if !bytes.Equal(b[i:i+3], []byte{3, 0x89, 0x3d}) {
			continue
		}
		for _, size := range [][]byte{b[i-3 : i-1], b[i-4 : i-2]} { // before a rowid of one byte or two
			if bytes.Equal(size, []byte{0x84, 0x5b}) {
				copy(size, []byte{0xbc, 0x23})
				copy(b[i+1:], []byte{0xf8, 0x4d})
				records++
			}
		}
	}
	if records != 500 || circles != 500 {
		t.Fatalf("%d records, %d rests", records, circles)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if why := refused(t, path, Options{}); !strings.Contains(why, "circle") {
		t.Error(why)
	}
}

// FuzzSQLite reads databases with bytes changed anywhere: a refusal is fine, a
// panic or a hang is not.
func FuzzSQLite(f *testing.F) {
	whole, err := os.ReadFile(demoReport)
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []uint64{1, 2, 3} {
		f.Add(seed, uint16(1), uint16(0))
		f.Add(seed, uint16(40), uint16(100))
	}
	dir := f.TempDir()
	n := 0
	f.Fuzz(func(t *testing.T, seed uint64, changes, cut uint16) {
		n++
		path := filepath.Join(dir, fmt.Sprintf("%d-%d.sqlite", os.Getpid(), n%8))
		if err := os.WriteFile(path, mutate(whole, seed, int(changes), int(cut)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(context.Background(), path, Options{Workers: 2})
		var r *schema.RejectedError
		if err != nil && !errors.As(err, &r) {
			t.Fatalf("%v is no refusal", err)
		}
	})
}

// mutate changes bytes, most of them where the structure of pages stands, and
// page numbers to those of other pages, which makes circles.
func mutate(whole []byte, seed uint64, changes, cut int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := append([]byte(nil), whole...)
	pages := len(b) / 4096
	for range changes%64 + 1 {
		at := r.IntN(pages) * 4096
		switch r.IntN(4) {
		case 0:
			b[r.IntN(len(b))] = byte(r.Uint32())
		case 1: // header and cell pointers
			b[at+r.IntN(64)] = byte(r.Uint32())
		case 2: // the last page below an interior page, or anything else there
			b[at+11] = byte(r.IntN(pages + 2))
		default: // a page that takes the place of another
			copy(b[at:at+4096], b[r.IntN(pages)*4096:])
		}
	}
	if cut > 0 {
		b = b[:max(0, len(b)-cut)]
	}
	return b
}

// TestMutated is the fuzz test with fixed seeds, so that every run has it.
func TestMutated(t *testing.T) {
	whole, err := os.ReadFile(demoReport)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mutated.sqlite")
	read := 0
	for seed := range uint64(300) {
		if err := os.WriteFile(path, mutate(whole, seed, int(seed%20), 0), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Read(context.Background(), path, Options{Workers: 2})
		var r *schema.RejectedError
		if err != nil && !errors.As(err, &r) {
			t.Fatalf("seed %d: %v is no refusal", seed, err)
		}
		if err == nil {
			read++
		}
	}
	if read == 0 || read == 300 {
		t.Errorf("%d of 300 were read", read)
	}
}
