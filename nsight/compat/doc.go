// Package compat reads SQLite exports of Nsight Systems exactly as the stormlog
// package does: its columns, its conversions, its refusals. It shares nothing
// with the fast reader but the way of opening a database.
package compat
