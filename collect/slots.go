package collect

import "context"

// slots hands out sets of GPUs, so that no two jobs share one.
type slots chan []string

// newSlots cuts a list of GPUs into sets of a size; what does not fill a set is
// not used.
func newSlots(gpus []string, size int) slots {
	s := make(slots, len(gpus)/size)
	for ; len(gpus) >= size; gpus = gpus[size:] {
		s <- gpus[:size]
	}
	return s
}

func (s slots) take(ctx context.Context) ([]string, bool) {
	if s == nil {
		return nil, ctx.Err() == nil
	}
	select {
	case set := <-s:
		return set, true
	case <-ctx.Done():
		return nil, false
	}
}

func (s slots) give(set []string) {
	if s != nil {
		s <- set
	}
}
