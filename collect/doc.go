// Package collect runs tracers over models, each in a process of its own, and
// keeps a status file beside what each one wrote.
//
// A run goes model by model: fetch (one at a time across processes), check the
// files, then one job per tracer on a free set of devices. Everything that can
// be decided without Python is decided here.
package collect
