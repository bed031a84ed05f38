// Package isolate runs one worker process so that nothing it does can cost
// another job: it bounds its time, silence, memory and log, ends its whole
// process tree, and says in one word how it went.
//
// On Linux the worker is a child of a guard, a second incarnation of this
// program that adopts every orphan of the worker (PR_SET_CHILD_SUBREAPER), so
// that a process that left the session and lost its parent is still found. The
// guard ends the tree when the supervisor says so or dies; the worker dies with
// the guard (Pdeathsig); what the guard leaves behind falls to the supervisor.
// Elsewhere the worker leads a process group and only that group is ended.
package isolate
