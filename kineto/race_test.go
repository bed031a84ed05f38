//go:build race

package kineto

// The race detector keeps the compiler from putting some values on the stack.
func init() { maxObjects, maxBytes = 0.6, 80 }
