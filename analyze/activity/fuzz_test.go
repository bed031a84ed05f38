package activity

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzDeviceUUIDs reads --device-uuid: each accepted value names a device, and
// what is refused is the user's mistake.
func FuzzDeviceUUIDs(f *testing.F) {
	for _, s := range []string{"GPU-1", "0=GPU-1", "a.json:1=GPU-2", "a=b=c", "=x", ":1=x", "1=", "-1=x", "99999999999999999999=x", "0=a\n0=b", "00=a"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		values := strings.Split(text, "\n")
		u, err := ParseDeviceUUIDs(values)
		var usage *UsageError
		if err != nil {
			if !errors.As(err, &usage) {
				t.Fatal(err)
			}
			return
		}
		if d, err := ParseDetail(text); err == nil && string(d) != text {
			t.Fatalf("detail %q is %q", text, d)
		}
		n := len(u.Shared)
		for _, table := range u.selected {
			n += len(table)
		}
		if n == 0 || n > len(values) {
			t.Fatalf("%q: %d devices", values, n)
		}
		for ordinal, uuid := range u.For("a.json") {
			if ordinal < 0 || uuid == "" {
				t.Fatalf("%q: device %d is %q", values, ordinal, uuid)
			}
		}
		if err := u.Bind([]string{"a.json", "b.json"}); err != nil && !errors.As(err, &usage) {
			t.Fatal(err)
		}
	})
}

// FuzzDeviceUUIDsByPID reads the file of --device-uuids-by-pid.
func FuzzDeviceUUIDsByPID(f *testing.F) {
	for _, s := range []string{`{"7":{"0":"GPU-1"}}`, `{"7":{"0":"a","00":"b"}}`, `{"x":{}}`, `null`, `{"7":null}`, `{"-1":{}}`, `{"7":{"0":""}}`} {
		f.Add(s)
	}
	path := filepath.Join(f.TempDir(), "uuids.json")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := ReadDeviceUUIDsByPID(path)
		var usage *UsageError
		if err != nil && !errors.As(err, &usage) {
			t.Fatal(err)
		}
		for pid, devices := range got {
			for ordinal, uuid := range devices {
				if pid < 0 || ordinal < 0 || uuid == "" {
					t.Fatalf("process %d, device %d: %q", pid, ordinal, uuid)
				}
			}
		}
	})
}
