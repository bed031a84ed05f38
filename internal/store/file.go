package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

const (
	// stallAfter is how long a connection may bring nothing.
	stallAfter = time.Minute
	// maxBreaks is how often a connection may break off in a row without bringing
	// anything.
	maxBreaks = 5
)

// File reads one version of an object from its start to its end. A connection
// that breaks off is opened again where it ended, a bounded number of times.
type File struct {
	ctx    context.Context //nolint:containedctx // a file is read within one call
	s      Store
	info   Info
	at     int64
	body   io.ReadCloser
	cancel context.CancelFunc
	stall  *time.Timer
	breaks int
	wait   func(context.Context, int) error // pauses between attempts
}

// Open opens an object that Stat or List described.
func Open(ctx context.Context, s Store, info Info) *File {
	return &File{ctx: ctx, s: s, info: info, wait: BackOff}
}

// Info describes what is read.
func (f *File) Info() Info { return f.info }

// Read returns io.EOF when as many bytes were read as the object has. Its errors
// are of type *Error: a connection that broke off must not look like a file that
// was cut off.
func (f *File) Read(p []byte) (int, error) {
	for {
		if f.at >= f.info.Size {
			return 0, io.EOF
		}
		if len(p) == 0 {
			return 0, nil
		}
		n, err := f.some(p)
		if n > 0 {
			f.at += int64(n)
			f.breaks = 0
			return n, nil // an error comes again, if it is one
		}
		if err == nil {
			continue
		}
		f.drop()
		if f.ctx.Err() != nil {
			return 0, NewError(f.s.URL(f.info.Key), Canceled, f.ctx.Err())
		}
		var known *Error
		if errors.As(err, &known) && known.Kind != Broken && known.Kind != Throttled {
			return 0, known
		}
		if f.breaks++; f.breaks > maxBreaks {
			if known == nil {
				known = NewError(f.s.URL(f.info.Key), Broken, fmt.Errorf("at byte %d of %d: %w", f.at, f.info.Size, err))
			}
			return 0, known
		}
		if err := f.wait(f.ctx, f.breaks); err != nil {
			return 0, NewError(f.s.URL(f.info.Key), Canceled, err)
		}
	}
}

// some reads what the connection has, and opens one where there is none.
func (f *File) some(p []byte) (int, error) {
	if f.body == nil {
		ctx, cancel := context.WithCancel(f.ctx)
		timer := time.AfterFunc(stallAfter, cancel)
		body, err := f.s.Read(ctx, f.info, f.at, -1)
		if err != nil {
			timer.Stop()
			cancel()
			return 0, err
		}
		f.body, f.cancel, f.stall = body, cancel, timer
	}
	f.stall.Reset(stallAfter)
	n, err := f.body.Read(p[:min(int64(len(p)), f.info.Size-f.at)])
	f.stall.Stop()
	if n == 0 && errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

func (f *File) drop() {
	if f.body != nil {
		f.stall.Stop()
		f.cancel()
		f.body.Close()
		f.body = nil
	}
}

// Close ends the connection.
func (f *File) Close() error {
	f.drop()
	return nil
}

// ReadAt reads a part of an object, which may be shorter at its end.
func ReadAt(ctx context.Context, s Store, info Info, offset, length int64) ([]byte, error) {
	end := min(info.Size, offset+length)
	part := info
	part.Size = end // File ends there
	f := Open(ctx, sized{s, info}, part)
	f.at = offset
	defer f.Close()
	data := make([]byte, max(0, end-offset))
	_, err := io.ReadFull(f, data)
	if len(data) == 0 {
		err = nil
	}
	return data, err
}

// sized gives reads the true description of an object and a bound.
type sized struct {
	Store
	info Info
}

func (s sized) Read(ctx context.Context, part Info, offset, _ int64) (io.ReadCloser, error) {
	return s.Store.Read(ctx, s.info, offset, part.Size-offset)
}

// Pause is the first pause between attempts. Tests shorten it.
var Pause = time.Second

// BackOff pauses before the next attempt: 1, 2, 4 and then 8 times as long.
func BackOff(ctx context.Context, attempt int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(Pause << min(attempt-1, 3)):
		return nil
	}
}
