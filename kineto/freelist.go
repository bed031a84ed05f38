package kineto

import (
	"runtime"
	"sync"
)

// freelist keeps values for their memory. A sync.Pool would lose them at every
// second garbage collection, and those come often here because little else is
// allocated.
type freelist[T any] struct {
	make func() T
	mu   sync.Mutex
	free []T
}

// get returns a value that was put back, or a new one.
func (f *freelist[T]) get() T {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := len(f.free); n > 0 {
		x := f.free[n-1]
		var none T
		f.free[n-1] = none
		f.free = f.free[:n-1]
		return x
	}
	return f.make()
}

// put keeps a value, unless there are plenty.
func (f *freelist[T]) put(x T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) < runtime.GOMAXPROCS(0)+2 {
		f.free = append(f.free, x)
	}
}
