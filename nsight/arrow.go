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

// records are the batches of a stream.
type records struct{ r *ipc.Reader }

// next returns io.EOF at the end.
func (s records) next() (arrow.RecordBatch, error) {
	if s.r.Next() {
		return s.r.RecordBatch(), nil
	}
	if err := s.r.Err(); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return nil, io.EOF
}

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
			find := wholeStreams
			head := make([]byte, len(arrowMagic))
			if _, err := file.ReadAt(head, 0); err == nil && string(head) == arrowMagic {
				find = fileStreams
			}
			if streams, err = find(file, st.Size()); err != nil {
				return reject("%s: %v", filepath.Base(a.path), err)
			}
		}
		for _, s := range streams {
			r, err := ipc.NewReader(io.NewSectionReader(file, s[0], s[1]-s[0]), ipc.WithAllocator(bounded(st.Size())))
			if err != nil {
				return damaged(a.path, err)
			}
			sent = f(records{r})
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

// wholeStreams finds the streams of a table, whose last one must have an end
// mark.
func wholeStreams(file io.ReaderAt, size int64) ([][2]int64, error) {
	walk, err := walkStreams(file, size)
	if err == nil && walk.cut {
		err = reject("it is cut, since it ends without an end mark; export the report again")
	}
	return walk.streams, err
}

// fileStreams finds the messages of an Arrow file, whose footer must list as
// many batches as there are.
func fileStreams(file io.ReaderAt, size int64) ([][2]int64, error) {
	frame, ok := fileFrame(file, size)
	if !ok {
		return nil, reject("the end of the file is damaged or cut; export the report again")
	}
	walk, err := walkStreams(io.NewSectionReader(file, frame.from, frame.to-frame.from), frame.to-frame.from)
	if err != nil {
		return nil, err
	}
	if walk.batches != frame.batches {
		return nil, reject("%d batches, and %d in the list at its end; export the report again", walk.batches, frame.batches)
	}
	for i := range walk.streams {
		walk.streams[i][0] += frame.from
		walk.streams[i][1] += frame.from
	}
	return walk.streams, nil
}

func fields(s *arrow.Schema) (out []string) {
	for _, f := range s.Fields() {
		out = append(out, f.Name)
	}
	return out
}

func (a *arrowTable) columns() (out []string, err error) {
	err = a.each(func(r records) error {
		out = fields(r.r.Schema())
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
		have := fields(r.r.Schema())
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
	case *array.Null: // which does not say so of its values
		return schema.Null
	case *array.Timestamp:
		return b.fromUnits(int64(a.Value(i)), a.DataType().(*arrow.TimestampType).Unit.Multiplier(), k)
	case *array.Duration:
		return b.fromUnits(int64(a.Value(i)), a.DataType().(*arrow.DurationType).Unit.Multiplier(), k)
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
