// Package btree scans tables of SQLite databases without SQLite: only whole
// tables, only forward, on several processors
// (https://www.sqlite.org/fileformat2.html).
//
// Every offset, size and page number is checked before it is used, and pages
// are read with pread, so a damaged or hostile file ends in a CorruptError and
// in nothing worse. What the package does not know is ErrUnsupported, for SQLite
// to read: write-ahead logs, UTF-16, WITHOUT ROWID, generated columns, views.
// Locks and journals are the caller's business.
package btree
