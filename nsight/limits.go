package nsight

// Limits of the importer. Together with the number of GPU events, API calls
// and NVTX ranges they bound its memory whatever a file says.
const (
	// DefaultRowGroup is how many rows a row group holds.
	DefaultRowGroup = 122_880

	blockRows      = 1 << 16   // rows packed and hashed together
	maxTextBytes   = 2 << 30   // distinct strings of a report
	maxValueBytes  = 64 << 20  // one text
	maxTables      = 10_000    // tables and views of a database
	maxLineBytes   = 128 << 20 // one line of a JSON lines export
	maxArrowBuffer = 8 << 30   // one buffer of an Arrow export
	maxMessage     = 500       // bytes of a message that the profiler recorded
	maxDense       = 1 << 24   // string IDs below are looked up in an array
)
