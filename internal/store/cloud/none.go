//go:build nocloud

// Package cloud makes object stores known to package store; this build has none.
package cloud
