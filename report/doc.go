// Package report writes what the analyses say about a dataset into one HTML
// file that needs neither a network nor a server. Its figures are the rows of
// the SQL files of analyze/query, or sums of them.
package report
