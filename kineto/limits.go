package kineto

// Limits of the importer. Together with the number of GPU events, launches and
// ranges they bound its memory whatever a file says.
const (
	// DefaultChunkSize is how much text one worker decodes at a time, in bytes.
	DefaultChunkSize = 4 << 20
	// DefaultRowGroup is how many rows a row group holds.
	DefaultRowGroup = 65_536

	maxEventBytes   = 64 << 20 // one event, or one value of the header
	maxHeaderBytes  = 64 << 20 // all text before or after the event array
	maxHeaderNotes  = 1000     // notes of the header that are kept
	maxDepth        = 1000     // nested arrays and objects within one value
	maxDynamicKeys  = 100      // argument keys without a column that are learned
	maxTransitions  = 8        // remembered texts between two keys
	maxLiteral      = 120      // bytes of a remembered text
	maxRepairTries  = 4096     // places tried as the end of a broken string, per event
	maxRepairBytes  = 4 << 20  // event text that repair looks at
	minRepairWork   = 64 << 10 // bytes that repair looks at again and again, per event,
	maxRepairWork   = 64       // and how many times its length more
	maxPhaseWork    = 16 << 20 // bytes read to find the end of one broken event beyond its own
	maxBeginEnd     = 8 << 20  // begin and end events kept for pairing
	maxNestedGzip   = 4        // gzip or zstd around gzip or zstd
	maxKindsCounted = 4096     // distinct phase and category pairs counted

	// pad is how many readable bytes stand behind the valid text of a buffer,
	// so that eight bytes can be loaded anywhere in it.
	pad = 64
)

// maxNameBytes is how much text the names and arguments of GPU events, launches,
// ranges, begin and end events may hold, each counted once: they stay in memory.
var maxNameBytes = 1 << 30
