package report

// Limits of what goes into the file, so that it stays small whatever the
// dataset holds. docs/report.md states them; the page says what is left out.
const (
	maxRows     = 1000 // rows of any table but kernels and operators
	maxTop      = 5000 // largest --top
	maxText     = 500  // characters of a text in a table
	maxBoxName  = 160  // characters of a name in the timeline
	maxDevices  = 16   // devices in the timeline
	maxLanes    = 24   // streams of a device in the timeline
	maxBoxes    = 48000
	maxSeries   = 24  // traces in the chart of iterations
	maxPoints   = 800 // iterations of one of them
	maxSlowest  = 200 // rows in the table of iterations
	maxPaths    = 3   // iterations whose critical path is walked, of a trace each
	defaultTop  = 100
	boxesOfCell = 3 // one per class

	maxPathEvents = 500_000 // events of a trace whose critical path is walked
)
