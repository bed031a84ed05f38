//go:build !(linux || darwin || freebsd)

package scratch

import "math"

// Room returns how many bytes may be put into temporary files: any number where
// nothing tells what is free.
func Room() int64 { return math.MaxInt64 }

// RoomIn is Room of a directory.
func RoomIn(string) int64 { return math.MaxInt64 }
