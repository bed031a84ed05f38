// Package freelist keeps values for the memory that they hold.
package freelist

import (
	"runtime"
	"sync"
)

// List keeps values that are no longer used. A sync.Pool would lose them at
// every second garbage collection, and those come often in a program that
// allocates little else. The zero value is not usable: set New.
type List[T any] struct {
	New func() T

	mu   sync.Mutex
	free []T
}

// Get returns a value that was put back, or a new one.
func (l *List[T]) Get() T {
	l.mu.Lock()
	if n := len(l.free); n > 0 {
		x := l.free[n-1]
		clear(l.free[n-1:])
		l.free = l.free[:n-1]
		l.mu.Unlock()
		return x
	}
	l.mu.Unlock()
	return l.New()
}

// Drop frees the values that are kept.
func (l *List[T]) Drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = nil
}

// Put keeps a value, unless there are more than processors can use.
func (l *List[T]) Put(x T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < runtime.GOMAXPROCS(0)+2 {
		l.free = append(l.free, x)
	}
}
