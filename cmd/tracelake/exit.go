package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"tracelake/analyze/activity"
	"tracelake/kineto"
)

// Exit codes; docs/commands.md lists them.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2
	exitPartial = 3
	exitInput   = 5
)

// exitError is an error with an exit code. One without text was reported
// already.
type exitError struct {
	code int
	text string
}

func (e *exitError) Error() string { return e.text }

func errUsage(format string, a ...any) error {
	return &exitError{exitUsage, fmt.Sprintf(format, a...)}
}

func errInput(format string, a ...any) error {
	return &exitError{exitInput, fmt.Sprintf(format, a...)}
}

func codeOf(err error) int {
	var e *exitError
	var usage *activity.UsageError
	var rejected *kineto.RejectedError
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &rejected):
		return exitInput
	}
	return exitFailed
}

func exitCodeOf(sig os.Signal) int {
	if sig == syscall.SIGTERM {
		return 143
	}
	return 130
}

// naming puts the name of an input before an error that lacks it.
func naming(path string, err error) error {
	if strings.HasPrefix(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
