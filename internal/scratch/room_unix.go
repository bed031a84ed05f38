//go:build linux || darwin || freebsd

package scratch

import (
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// Room returns how many bytes may be put into temporary files: half of what is
// free.
func Room() int64 { return RoomIn(os.TempDir()) }

// RoomIn is Room of a directory.
func RoomIn(dir string) int64 {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return math.MaxInt64
	}
	return int64(uint64(st.Bavail) * uint64(st.Bsize) / 2) //nolint:gosec,unconvert // the types differ between systems
}
