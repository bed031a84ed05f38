// Package schema is the vocabulary of tracelake: the tables of a dataset with
// their columns, units and documentation, the in-memory model of one trace,
// and the registry of diagnostics. It knows no source format and imports
// nothing else of tracelake.
package schema

// Version is the version of the table declarations. A new column raises it.
const Version = 1
