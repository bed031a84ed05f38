package main

import (
	"errors"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"
)

// FuzzFlags reads values of flags that have a form of their own: sizes, times,
// shares, sides and patterns. What is accepted is in range, and what is refused
// is told without a panic.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{
		"512MiB", "2 gb", "-1", "nan", "inf", "NaNGiB", "1e30", "0x1p3", "90s", "1.5h", "-5", "1e300", "0/1", "3/2", "+1/+2", "1/0", "-1/3", "9223372036854775807/9223372036854775807",
		"step_(\\d+)", "mine=step_(\\d+)", "(", "()", "=", "a=b=(c)", "(?P<id>x)", "x{1000}{1000}", "lake:run=a,rank=1", "lake:rank=x", ":", "lake:run=a,run=b,iteration=1,2",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var size sizeValue
		if err := size.Set(text); err == nil && (size < 0 || size > 1<<62) {
			t.Fatalf("size %q is %d", text, size)
		}
		var seconds secondsValue
		if err := seconds.Set(text); err == nil && math.Abs(time.Duration(seconds).Seconds()) > math.MaxInt64/1e9+1 {
			t.Fatalf("time %q is %v", text, time.Duration(seconds))
		}
		var usage *exitError
		if i, n, err := parseShard(text); err == nil && (i < 0 || i >= n) || err != nil && !errors.As(err, &usage) {
			t.Fatalf("shard %q is %d of %d, %v", text, i, n, err)
		}
		marks, err := parsePatterns([]string{text, "x_(.)"})
		if err != nil && !errors.As(err, &usage) {
			t.Fatal(err)
		}
		if err == nil && (len(marks.UserPatterns) != 2 || marks.UserPatterns[0].Expr.NumSubexp() < 1) {
			t.Fatalf("pattern %q: %v", text, marks.UserPatterns)
		}
		if re, bad := regexp.Compile(text); bad == nil && re.NumSubexp() > 0 && err != nil && !strings.Contains(text, "=") {
			t.Fatalf("pattern %q is refused: %v", text, err)
		}
		path, vars, err := parseSide(text)
		if err != nil && !errors.As(err, &usage) {
			t.Fatal(err)
		}
		if err == nil && len(vars) == 0 && path != text {
			t.Fatalf("side %q is %q", text, path)
		}
		for name, v := range vars {
			if s, is := v.(string); is && !strings.Contains(text, name+"="+s) {
				t.Fatalf("side %q: %s is %q", text, name, s)
			}
		}
	})
}
