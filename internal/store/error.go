package store

import (
	"context"
	"io/fs"
)

// Kind says what went wrong.
type Kind uint8

// Kinds of errors.
const (
	Other     Kind = iota
	NotFound       // no such object
	NoBucket       // no such bucket
	Exists         // there is an object already
	Denied         // not allowed, or wrong credentials
	Changed        // the object is not the one that was listed
	Throttled      // the store asks for fewer requests
	Broken         // the connection or the service failed, again and again
	Canceled       // by the caller
)

var hints = map[Kind]string{
	NotFound:  "no such object",
	NoBucket:  "no such bucket",
	Exists:    "exists already",
	Denied:    "access denied; check the credentials and their rights",
	Changed:   "changed while it was read; try again",
	Throttled: "the store asks for fewer requests; try again later, or with fewer at once",
	Broken:    "cannot be reached or broke off, also when tried again; check endpoint, region and network",
	Canceled:  "interrupted",
}

// Error is an error of a store. It does not wrap the error of a library: those
// hold addresses with signatures, and texts that mean something else elsewhere.
type Error struct {
	URL  string
	Kind Kind
	Text string // what the store said, without secrets; "" for nothing worth repeating
}

// NewError makes an error from one of a library.
func NewError(url string, kind Kind, err error) *Error {
	e := &Error{URL: url, Kind: kind}
	if err == nil {
		return e
	}
	if kind != Canceled {
		e.Text = Clean(err.Error())
	}
	return e
}

// Error names the object and says what to do.
func (e *Error) Error() string {
	s := e.URL
	if h := hints[e.Kind]; h != "" {
		s += ": " + h
	}
	if e.Text == "" || e.Kind == NotFound || e.Kind == Exists {
		return s
	}
	return s + " (" + e.Text + ")"
}

// Is makes errors.Is work with the errors of package fs.
func (e *Error) Is(target error) bool {
	switch target {
	case fs.ErrNotExist:
		return e.Kind == NotFound || e.Kind == NoBucket
	case fs.ErrExist:
		return e.Kind == Exists
	case fs.ErrPermission:
		return e.Kind == Denied
	case context.Canceled:
		return e.Kind == Canceled
	}
	return false
}
