//go:build (linux || darwin) && cgo && !noduckdb

package query

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// halfOfDisk returns half of what is free where a directory is, as DuckDB
// writes sizes, so that a query that spills never fills the disk for others.
func halfOfDisk(dir string) string {
	var st unix.Statfs_t
	if unix.Statfs(dir, &st) != nil {
		return ""
	}
	return fmt.Sprintf("%dB", st.Bavail*uint64(st.Bsize)/2)
}
