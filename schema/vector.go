package schema

// Vector is one column of a batch of rows. Only rows that have a value are
// stored.
type Vector struct {
	// Rows are the ascending row numbers that have a value; nil means that
	// every row has one.
	Rows []int32
	// Vals has one entry per row with a value: an integer, the bits of a
	// float64, 0 or 1 for a Bool, or the position in Dict of a string.
	Vals []int64
	// Dict are the distinct strings of a String column, in order of first use.
	Dict []string
	// Lists has one entry per row with a value in an Intervals column; Vals is
	// unused there.
	Lists [][]Interval
}
