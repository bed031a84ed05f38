package reportcopy

// WriteError says that a copy could not be written, whatever its source is like.
type WriteError struct {
	Path string // of the copy
	Err  error
}

func (e *WriteError) Error() string { return e.Path + ": " + e.Err.Error() }

func (e *WriteError) Unwrap() error { return e.Err }

// written is a sink whose errors are those of writing.
type written struct {
	sink
	path string
}

func (w written) blame(err error) error {
	if err == nil {
		return nil
	}
	return &WriteError{w.path, err}
}

func (w written) create(table string, cols []column) (func([]any) error, error) {
	put, err := w.sink.create(table, cols)
	return func(row []any) error { return w.blame(put(row)) }, w.blame(err)
}

func (w written) finish() error { return w.blame(w.sink.finish()) }
