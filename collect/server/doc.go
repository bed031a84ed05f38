// Package server opens and closes a profiler window on a running vLLM server
// and finds the traces that its workers wrote.
//
// The engine runs /start_profile before its answer goes out, so that a lost or
// failed answer can leave it profiling. Whatever may have been started is
// therefore stopped: exactly once, also where the work inside the window fails,
// takes too long or is cancelled. A stop that fails is not repeated; the record
// of the window says that the profiler may still be running. The server cannot
// be asked whether another profile was running already: two programs must not
// profile one server at a time.
package server
