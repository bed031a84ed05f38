package store

import (
	"strings"
	"testing"
)

// FuzzURL takes URLs apart: a bucket holds no credentials, and no message shows
// what stands behind a question mark or before an @.
func FuzzURL(f *testing.F) {
	for _, s := range []string{"s3://b/k", "gs://b", "s3://user:secret@b/k", "s3://b/k?endpoint=x&sig=y", "s3:///k", "file:///a%20b", "file://host/a", "file:a", "s3://b/?%zz", "://", "az://b/a?b?c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := Local(text); err == nil && strings.HasPrefix(text, "file:") && (p == "" || strings.HasPrefix(p, "file:")) {
			t.Fatalf("%q is the path %q", text, p)
		}
		l, err := Parse(text)
		if err == nil {
			if l.Bucket == "" || strings.ContainsAny(l.Bucket, "/@?") || strings.Contains(l.Key, "?") {
				t.Fatalf("%q: %+v", text, l)
			}
			return
		}
		if _, secret, ok := strings.Cut(text, "?"); ok && len(secret) > 3 && !strings.ContainsAny(secret, " \t\n\r\"'") && !strings.Contains(strings.Replace(text, secret, "", 1), secret) &&
			strings.Contains(err.Error(), secret) {
			t.Fatalf("%q: the message shows %q: %v", text, secret, err)
		}
	})
}
