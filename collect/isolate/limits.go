package isolate

import "time"

const (
	maxEventLine = 4 << 20   // bytes of one event; longer lines count as garbage
	maxPhases    = 256       // phases kept of a worker
	maxReason    = 4 << 10   // bytes of an error message kept
	maxTraceback = 256 << 10 // bytes of a traceback kept

	defaultLogHead = 4 << 20
	defaultLogTail = 1 << 20
	defaultGrace   = 5 * time.Second

	// A worker whose result is in gets this long to exit.
	defaultExitGrace = 30 * time.Second
	// A worker that closed its event descriptor without a result can only
	// fail; it gets this long to end by itself.
	closedGrace = 5 * time.Second
	// What a killed tree may take to disappear before it counts as surviving.
	killWait = 10 * time.Second
	// How often memory is measured.
	samplePeriod = 100 * time.Millisecond
)
