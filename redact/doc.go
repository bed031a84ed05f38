// Package redact makes copies of traces that can be shared: texts that could be
// private are replaced, times, shapes and links stay. What is known to be public
// is listed; everything else goes.
package redact
