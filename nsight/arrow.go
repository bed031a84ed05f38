package nsight

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// arrowTable is a table in an Arrow file, or in streams that are parts of one.
type arrowTable struct {
	path    string
	streams [][2]int64 // where its streams start and end; nil for the whole file
}

// records is what both framings give.
type records interface {
	next() (arrow.RecordBatch, error) // io.EOF at the end
	schema() *arrow.Schema
	release()
}

type streamRecords struct{ r *ipc.Reader }

func (s streamRecords) next() (arrow.RecordBatch, error) {
	if s.r.Next() {
		return s.r.RecordBatch(), nil
	}
	if err := s.r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, io.EOF
}

func (s streamRecords) schema() *arrow.Schema { return s.r.Schema() }

func (s streamRecords) release() { s.r.Release() }

type fileRecords struct {
	r *ipc.FileReader
	n int
}

func (f *fileRecords) next() (arrow.RecordBatch, error) {
	if f.n == f.r.NumRecords() {
		return nil, io.EOF
	}
	f.n++
	return f.r.RecordBatchAt(f.n - 1)
}

func (f *fileRecords) schema() *arrow.Schema { return f.r.Schema() }

func (f *fileRecords) release() { _ = f.r.Close() }

const arrowMagic = "ARROW1"

// each calls f for every run of batches of the table.
func (a *arrowTable) each(f func(records) error) error {
	file, err := regular.Open(a.path)
	if err != nil {
		return err
	}
	defer file.Close()
	st, err := file.Stat()
	if err != nil {
		return err
	}
	var sent error // what f says is not the fault of the file
	err = guarded(a.path, func() error {
		streams := a.streams
		if streams == nil {
			head := make([]byte, len(arrowMagic))
			if _, err := file.ReadAt(head, 0); err == nil && string(head) == arrowMagic {
				r, err := ipc.NewFileReader(file)
				if err != nil {
					return damaged(a.path, err)
				}
				rec := &fileRecords{r: r}
				defer rec.release()
				sent = f(rec)
				return sent
			}
			walk, err := walkStreams(file, st.Size())
			if err != nil {
				return reject("%s: %v", filepath.Base(a.path), err)
			}
			if walk.cut {
				return reject("%s is cut: it ends without an end mark; export the report again", filepath.Base(a.path))
			}
			streams = walk.streams
		}
		for _, s := range streams {
			r, err := ipc.NewReader(io.NewSectionReader(file, s[0], s[1]-s[0]))
			if err != nil {
				return damaged(a.path, err)
			}
			sent = f(streamRecords{r})
			r.Release()
			if sent != nil {
				return sent
			}
		}
		return nil
	})
	if sent != nil {
		return sent
	}
	return err
}

func fields(s *arrow.Schema) (out []string) {
	for _, f := range s.Fields() {
		out = append(out, f.Name)
	}
	return out
}

func (a *arrowTable) columns() (out []string, err error) {
	err = a.each(func(r records) error {
		out = fields(r.schema())
		return errStop
	})
	if errors.Is(err, errStop) {
		err = nil
	}
	return out, err
}

func (a *arrowTable) scan(ctx context.Context, wants []want, emit func(*batch) error) error {
	return a.each(func(r records) error {
		at := make([]int, len(wants))
		have := fields(r.schema())
		for j, w := range wants {
			at[j] = column(have, w.name)
		}
		b := newBatch(wants, func(j int) bool { return at[j] >= 0 })
		for {
			if err := ctx.Err(); err != nil {
				return err
			}
			rec, err := r.next()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return damaged(a.path, err)
			}
			for from := 0; from < int(rec.NumRows()); from += libraryRows {
				n := min(libraryRows, int(rec.NumRows())-from)
				b.reset()
				b.n = n
				for j, c := range at {
					if c < 0 {
						continue
					}
					col := rec.Column(c)
					for i := from; i < from+n; i++ {
						b.cols[j] = append(b.cols[j], b.arrowValue(col, i, wants[j].kind))
					}
				}
				if err := emit(b); err != nil {
					return err
				}
			}
		}
	})
}

func (b *batch) arrowValue(col arrow.Array, i int, k kind) int64 {
	if col.IsNull(i) {
		return schema.Null
	}
	switch a := col.(type) {
	case *array.Int64:
		return b.fromInt(a.Value(i), k, false)
	case *array.Uint64:
		return b.fromInt(int64(a.Value(i)), k, true)
	case *array.Int32:
		return b.fromInt(int64(a.Value(i)), k, false)
	case *array.Uint32:
		return b.fromInt(int64(a.Value(i)), k, false)
	case *array.Int16:
		return b.fromInt(int64(a.Value(i)), k, false)
	case *array.Uint16:
		return b.fromInt(int64(a.Value(i)), k, false)
	case *array.Int8:
		return b.fromInt(int64(a.Value(i)), k, false)
	case *array.Uint8:
		return b.fromInt(int64(a.Value(i)), k, false)
	case *array.Boolean:
		if a.Value(i) {
			return b.fromInt(1, k, false)
		}
		return b.fromInt(0, k, false)
	case *array.Float32:
		return b.fromFloat(float64(a.Value(i)), k)
	case *array.Float64:
		return b.fromFloat(a.Value(i), k)
	case *array.Dictionary:
		return b.arrowValue(a.Dictionary(), a.GetValueIndex(i), k)
	case *array.String:
		return b.fromText([]byte(a.Value(i)), k)
	case *array.LargeString:
		return b.fromText([]byte(a.Value(i)), k)
	case *array.StringView:
		return b.fromText([]byte(a.Value(i)), k)
	case *array.Binary:
		return b.fromText(a.Value(i), k)
	case *array.LargeBinary:
		return b.fromText(a.Value(i), k)
	case *array.BinaryView:
		return b.fromText(a.Value(i), k)
	}
	b.odd++
	return schema.Null
}
