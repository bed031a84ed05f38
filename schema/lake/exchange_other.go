//go:build !linux && !darwin

package lake

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }
