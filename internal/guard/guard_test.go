package guard

import (
	"errors"
	"io"
	"testing"
)

func TestCall(t *testing.T) {
	if err := Call(func() error { return nil }); err != nil {
		t.Error(err)
	}
	if err := Call(func() error { return io.EOF }); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	var list []int
	var p *PanicError
	if err := Call(func() error { _ = list[len(list)]; return nil }); !errors.As(err, &p) {
		t.Errorf("%v is no panic", err)
	}
}
