//go:build !unix

package nsight

import "os"

// writer cannot be told here.
func writer(*os.File) bool { return false }
