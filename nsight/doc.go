// Package nsight reads exports of NVIDIA Nsight Systems: SQLite, parquetdir,
// arrowdir, one-file Arrow and JSON lines.
//
// All formats hold the same tables, so each is read through one interface
// (tables), columns are bound by name, and every column but start and end may
// be missing. Tables and columns are taken by an allow-list, and of the strings
// of a report only those that imported rows refer to: a report also holds the
// environment and the command lines of the machine.
package nsight
