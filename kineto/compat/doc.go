// Package compat reads Kineto traces exactly as the reference, stormlog 0.4.3,
// does: the same dialect of JSON, the same conversions, the same floating-point
// times and the same refusals. It exists to compare the rest of tracelake with
// the reference; the package above it reads more files and reads them better.
//
// The text is held in memory as a whole. Where the reference fails with an
// internal error, for example on an infinite device number, Load fails with an
// ordinary Error. Differences that remain: times, process IDs and thread IDs
// beyond int64 are refused, and a text may have at most MaxText bytes.
package compat
