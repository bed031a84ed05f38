package aside

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func create(t *testing.T) func() (*os.File, error) {
	path := filepath.Join(t.TempDir(), "aside")
	return func() (*os.File, error) { return os.Create(path) }
}

// TestPut: many goroutines find again what they put there.
func TestPut(t *testing.T) {
	a := New(create(t))
	defer a.Close()
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			want := strings.Repeat(string(rune('A'+i)), i)
			at, ok := a.Put([]byte(want))
			got := make([]byte, i)
			if _, err := a.ReadAt(got, at); !ok || err != nil || string(got) != want {
				t.Errorf("%q instead of %q: %t, %v", got, want, ok, err)
			}
		})
	}
	wg.Wait()
	if a.Full() || a.Err() != nil {
		t.Errorf("full: %t, %v", a.Full(), a.Err())
	}
}

// TestFull: what cannot be written is refused, then and afterwards, and what was
// written before is still there.
func TestFull(t *testing.T) {
	var none *File
	opened := 0
	for what, a := range map[string]*File{
		"nil":     none,
		"no file": New(func() (*os.File, error) { opened++; return nil, errors.New("no room") }),
		"read-only": New(func() (*os.File, error) {
			return os.Open(os.DevNull)
		}),
	} {
		for range 2 {
			if _, ok := a.Put([]byte("x")); ok || !a.Full() {
				t.Errorf("%s: taken %t, full %t", what, ok, a.Full())
			}
		}
		if a.Err() != nil {
			t.Errorf("%s: %v", what, a.Err())
		}
	}
	if opened != 1 {
		t.Errorf("opened %d times", opened)
	}
	a := New(create(t))
	at, _ := a.Put([]byte("kept"))
	a.full = true
	if got := make([]byte, 4); true {
		if _, err := a.ReadAt(got, at); err != nil || string(got) != "kept" {
			t.Errorf("%q, %v", got, err)
		}
	}
}

// TestUnreadable: a failure to read is an error then and in Err, the first one.
func TestUnreadable(t *testing.T) {
	a := New(create(t))
	at, _ := a.Put([]byte("gone"))
	a.Close()
	if _, ok := a.Put([]byte("x")); ok {
		t.Error("a closed file took bytes")
	}
	_, first := a.ReadAt(make([]byte, 4), at)
	_, second := a.ReadAt(make([]byte, 4), at)
	if first == nil || second == nil || !errors.Is(a.Err(), first) {
		t.Errorf("%v, %v, Err %v", first, second, a.Err())
	}
	a.Close()
}
