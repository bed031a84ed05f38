package reportcopy

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tracelake/redact"
)

// FuzzCopy copies exports of every form with bytes of a file changed: an error
// leaves nothing behind, and says nothing of what is private.
func FuzzCopy(f *testing.F) {
	names := make([]string, 0, len(forms))
	for name := range forms {
		names = append(names, name)
	}
	slices.Sort(names)
	exports := f.TempDir()
	for _, name := range names {
		plant(f, forms[name], filepath.Join(exports, name))
	}
	for i := range names {
		f.Add(uint8(i), uint64(i), uint8(i*3))
	}
	policy, err := redact.New(redact.Options{Key: "k"})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64, changes uint8) {
		name := names[int(which)%len(names)]
		from := filepath.Join(exports, name)
		dir := t.TempDir()
		in, out := filepath.Join(dir, "in-"+name), filepath.Join(dir, "out", name)
		if err := os.Mkdir(filepath.Dir(out), 0o700); err != nil {
			t.Fatal(err)
		}
		files := []string{in}
		if st, err := os.Stat(from); err == nil && st.IsDir() {
			if err := os.CopyFS(in, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
			files, _ = filepath.Glob(filepath.Join(in, "*"))
		} else if b, err := os.ReadFile(from); err != nil || os.WriteFile(in, b, 0o600) != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(seed, 6))
		file := files[r.IntN(len(files))]
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for range changes % 64 {
			b[r.IntN(len(b))] = byte(r.Uint32())
		}
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Copy(context.Background(), policy, in, out); err != nil {
			if left, _ := os.ReadDir(filepath.Dir(out)); len(left) > 0 || strings.Contains(err.Error(), secret) {
				t.Fatalf("%v left, %v", left, err)
			}
		}
	})
}
