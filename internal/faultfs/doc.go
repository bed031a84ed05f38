//go:build !linux

// Package faultfs is for tests on Linux.
package faultfs
