package nsight

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tracelake/schema"
)

// samples returns the SQLite databases at hand: cases of this repository and,
// where they are there, the shared reports.
func samples(t testing.TB) (out []string) {
	t.Helper()
	dirs := []string{"../testdata/stormlog", "../testdata/visible", "../testdata/nsight"}
	shared := os.Getenv("TRACELAKE_SHARED")
	if shared == "" {
		shared = "../../shared"
	}
	if _, err := os.Stat(filepath.Join(shared, "traces/nsys")); err != nil {
		t.Logf("NOT READ: shared reports: %v; TRACELAKE_SHARED may name the collection", err)
	}
	for _, d := range append(dirs, filepath.Join(shared, "traces/nsys"), filepath.Join(shared, "traces/nsys/synthetic")) {
		m, err := filepath.Glob(filepath.Join(d, "*.sqlite"))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m...)
	}
	if len(out) < 40 {
		t.Fatalf("only %d databases", len(out))
	}
	return out
}

// dump writes all columns of a table as texts and, those that are, as integers.
func dump(t *testing.T, src tables, table string, columns []string) []string {
	t.Helper()
	var out []string
	for _, k := range []kind{text, integer, real} {
		var wants []want
		for _, c := range columns {
			wants = append(wants, want{c, k})
		}
		odd := int64(0)
		err := src.scan(context.Background(), table, wants, nil, func(b *batch) error {
			odd += b.odd
			for i := range b.n {
				var row strings.Builder
				for j := range wants {
					v := cell(b, j, i)
					switch {
					case v == schema.Null:
						row.WriteString("|null")
					case k == text:
						row.WriteString("|" + b.texts.list[v])
					default:
						fmt.Fprintf(&row, "|%d", v)
					}
				}
				out = append(out, row.String())
			}
			return nil
		})
		if err != nil {
			return append(out, "error")
		}
		out = append(out, fmt.Sprintf("%d odd", odd))
	}
	return out
}

// TestScanAgainstSQLite compares every table of every sample with what SQLite
// reads.
func TestScanAgainstSQLite(t *testing.T) {
	scanned := 0
	for _, path := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			fast, err := openSQLite(path, Options{Workers: 3})
			if err != nil {
				st, serr := os.Stat(path)
				if _, lerr := openSQLite(path, Options{Library: true}); lerr == nil && serr == nil && st.Size() > 0 {
					t.Fatalf("the library opens it: %v", err)
				}
				return
			}
			defer fast.close()
			slow, err := openSQLite(path, Options{Library: true})
			if err != nil {
				t.Fatal(err)
			}
			defer slow.close()
			for _, name := range slow.names() {
				columns, err := slow.columns(name)
				if err != nil {
					t.Fatal(err)
				}
				got, err := fast.columns(name)
				if err != nil || strings.Join(got, ",") != strings.Join(columns, ",") {
					t.Fatalf("%s: columns %v, want %v (%v)", name, got, columns, err)
				}
				if d := fast.(*database); d.scn == nil || d.scn.Table(name) == nil || d.scn.Table(name).Unsupported {
					t.Errorf("%s was left to SQLite", name)
				}
				a, b := dump(t, fast, name, columns), dump(t, slow, name, columns)
				if len(a) != len(b) {
					t.Fatalf("%s: %d rows, want %d", name, len(a), len(b))
				}
				for i := range a {
					if a[i] != b[i] {
						t.Fatalf("%s row %d:\n got %.300q\nwant %.300q", name, i, a[i], b[i])
					}
				}
				scanned++
			}
		})
	}
	if scanned < 500 {
		t.Errorf("only %d tables", scanned)
	}
}
