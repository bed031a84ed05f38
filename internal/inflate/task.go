package inflate

import "sync/atomic"

// task is work that one goroutine does, whichever claims it first.
type task struct {
	state atomic.Bool
	done  chan struct{}
	work  func()
	then  func() // work for which nobody waits
}

func (t *task) init(work, then func()) { t.work, t.then, t.done = work, then, make(chan struct{}) }

func (t *task) untouched() bool { return !t.state.Load() }

func (t *task) claim() bool { return t.state.CompareAndSwap(false, true) }

// finish does the work, or waits for it.
func (t *task) finish() {
	if t.claim() {
		t.do()
	}
	<-t.done
}

func (t *task) do() {
	t.work()
	close(t.done)
	if t.then != nil {
		t.then()
	}
}

func (t *task) ended() bool {
	select {
	case <-t.done:
		return true
	default:
		return false
	}
}
