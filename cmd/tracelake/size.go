package main

import (
	"fmt"
	"strconv"
	"strings"
)

// sizeValue is a flag for an amount of memory: 512MiB, 2GB, 1073741824.
type sizeValue int64

var units = []struct {
	suffix string
	n      int64
}{
	{"KiB", 1 << 10},
	{"MiB", 1 << 20},
	{"GiB", 1 << 30},
	{"TiB", 1 << 40},
	{"KB", 1e3},
	{"MB", 1e6},
	{"GB", 1e9},
	{"TB", 1e12},
	{"B", 1},
}

func (s *sizeValue) Set(text string) error {
	t, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if n := len(t) - len(u.suffix); n >= 0 && strings.EqualFold(t[n:], u.suffix) {
			t, factor = strings.TrimSpace(t[:n]), u.n
			break
		}
	}
	f, err := strconv.ParseFloat(t, 64)
	if size := f * float64(factor); err != nil || !(size >= 0 && size <= 1<<62) { // neither holds of NaN
		return fmt.Errorf("want a size such as 512MiB or 2GB")
	}
	*s = sizeValue(f * float64(factor))
	return nil
}

func (s *sizeValue) String() string {
	if *s == 0 {
		return "0" // which help takes for no default
	}
	return formatSize(int64(*s))
}
func (s *sizeValue) Type() string { return "size" }

// formatSize prints bytes for people.
func formatSize(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}
