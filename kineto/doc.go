// Package kineto imports Kineto and other Chrome-format traces: the JSON that
// PyTorch, vLLM and their relatives write, plain, gzip or zstd.
//
// The text is cut into chunks of a fixed size. Workers guess where the first
// event of their chunk starts and decode from there into columns; the chain of
// chunk ends proves each guess, and a chunk whose guess was wrong is decoded
// again from the right place. The result therefore never depends on the number
// of workers, the read size, the compression or the guesses.
//
// Events go to the tables of package schema. Rows of tables that need no
// linking are handed to the sink as row groups while the file is read; GPU
// events, launches and ranges stay in packed columns until the end.
package kineto
