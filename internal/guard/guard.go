// Package guard keeps a panic over one input from ending the program.
package guard

import "fmt"

// PanicError is what a function panicked with. Its text may quote the input.
type PanicError struct{ Value any }

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Call calls a function and returns its panic, if it has one, as a *PanicError.
func Call(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{p}
		}
	}()
	return f()
}
