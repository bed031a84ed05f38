// Package columnar writes tables as Parquet or Arrow IPC files from columns
// that are already sparse and dictionary-coded.
package columnar

import "tracelake/schema"

// Vector is one column of a row group.
type Vector = schema.Vector
