//go:build !linux

package collect

import "errors"

func exchange(_, _ string) error { return errors.ErrUnsupported }
