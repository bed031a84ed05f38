// Package convert imports traces into a dataset: it finds the inputs, reads
// each through its reader, links GPU work to launches and iterations, groups
// it into activities, and commits the tables. One bad input never stops the
// others.
package convert
