package main

import (
	"fmt"
	"math"
	"strconv"
	"time"
)

// secondsValue is a flag that takes a number of seconds, or a duration with a
// unit such as 90s, 1.5h or 250ms.
type secondsValue time.Duration

func (v *secondsValue) String() string { return time.Duration(*v).String() }

func (v *secondsValue) Type() string { return "seconds" }

func (v *secondsValue) Set(s string) error {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if !(math.Abs(n) < math.MaxInt64/1e9) {
			return fmt.Errorf("%q is out of range", s)
		}
		*v = secondsValue(n * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is neither a number of seconds nor a duration such as 90s", s)
	}
	*v = secondsValue(d)
	return nil
}
