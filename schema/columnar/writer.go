package columnar

import (
	"slices"

	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// chunkWriter encodes one column of one row group.
type chunkWriter struct {
	cells
	e      *Encoder
	base   int // start of the column in e.out
	leaves []leaf
}

// leaf starts a column chunk. Pointers to earlier ones become stale.
func (w *chunkWriter) leaf(t format.Type, codec format.CompressionCodec, path ...string) *leaf {
	w.leaves = append(w.leaves, leaf{meta: columnMetaData{
		Type: t, Codec: codec, PathInSchema: path, NumValues: int64(w.rows),
		Encoding: make([]format.Encoding, 0, 3), EncodingStats: make([]format.PageEncodingStats, 0, 2),
	}})
	return &w.leaves[len(w.leaves)-1]
}

// span is the part of a column that goes into one page: rows r0 to r1, which
// have the values k0 to k1.
type span struct{ r0, r1, k0, k1 int }

// next returns the span behind s, of at most n rows.
func (w *chunkWriter) next(s span, n int) span {
	s.r0, s.k0 = s.r1, s.k1
	s.r1 = min(w.rows, s.r0+n)
	if w.dense {
		s.k1 = s.r1
		return s
	}
	k, _ := slices.BinarySearch(w.v.Rows[s.k0:], int32(s.r1))
	s.k1 = s.k0 + k
	return s
}

// begin starts the page of a span with its definition levels.
func (w *chunkWriter) begin(s span) {
	w.e.page = w.e.page[:0]
	if !w.decl.Nullable {
		return
	}
	var set []int32
	if !w.dense {
		set = w.v.Rows[s.k0:s.k1]
	}
	w.e.page = appendPresence(w.e.page, set, w.dense, s.r0, s.r1)
}

// end writes the page of a span.
func (w *chunkWriter) end(l *leaf, enc format.Encoding, s span, b bounds) error {
	n := s.r1 - s.r0
	return w.data(l, enc, n, page{
		firstRow: int64(s.r0), nulls: int64(n - (s.k1 - s.k0)), values: s.k1 - s.k0, bounds: b,
	})
}

// data writes e.page as a data page of n values, nulls included.
func (w *chunkWriter) data(l *leaf, enc format.Encoding, n int, p page) error {
	at := len(w.e.out) - w.base
	h := format.DataPageHeader{
		NumValues: int32(n), Encoding: enc,
		DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE,
		Statistics: format.Statistics{NullCount: p.nulls},
	}
	raw, stored, err := w.e.emit(&format.PageHeader{Type: format.DataPage, DataPageHeader: thrift.New(h)}, w.e.page, l.meta.Codec)
	if err != nil {
		return err
	}
	if len(l.pages) == 0 {
		l.meta.DataPageOffset = int64(at)
	}
	l.meta.TotalUncompressedSize += int64(raw)
	l.meta.TotalCompressedSize += int64(stored)
	l.meta.Statistics.NullCount += p.nulls
	p.offset, p.size = int64(at), int32(stored)
	l.pages = append(l.pages, p)
	l.note(format.DataPage, enc)
	return nil
}

// dictionary writes the dictionary page, n values in PLAIN encoding.
func (w *chunkWriter) dictionary(l *leaf, n int, plain []byte) error {
	h := format.DictionaryPageHeader{NumValues: int32(n), Encoding: format.Plain}
	raw, stored, err := w.e.emit(&format.PageHeader{Type: format.DictionaryPage, DictionaryPageHeader: thrift.New(h)}, plain, l.meta.Codec)
	if err != nil {
		return err
	}
	l.meta.TotalUncompressedSize += int64(raw)
	l.meta.TotalCompressedSize += int64(stored)
	l.note(format.DictionaryPage, format.Plain)
	return nil
}

// note counts a page, so that readers can see whether a dictionary holds every
// value of the chunk.
func (l *leaf) note(t format.PageType, enc format.Encoding) {
	for i := range l.meta.EncodingStats {
		if s := &l.meta.EncodingStats[i]; s.PageType == t && s.Encoding == enc {
			s.Count++
			return
		}
	}
	l.meta.EncodingStats = append(l.meta.EncodingStats, format.PageEncodingStats{PageType: t, Encoding: enc, Count: 1})
	if !slices.Contains(l.meta.Encoding, enc) {
		l.meta.Encoding = append(l.meta.Encoding, enc)
	}
}

// finish completes the metadata of a chunk whose extremes are b.
func (w *chunkWriter) finish(l *leaf, b bounds) {
	if !slices.Contains(l.meta.Encoding, format.RLE) {
		l.meta.Encoding = append(l.meta.Encoding, format.RLE) // the levels
	}
	l.meta.Statistics.setBounds(b)
}

func (s *statistics) setBounds(b bounds) {
	if b.min == nil {
		return
	}
	s.MinValue, s.MaxValue = b.min, b.max
	s.IsMinExact, s.IsMaxExact = thrift.New(b.minExact), thrift.New(b.maxExact)
}

// empty writes a column in which no row has a value, as one page.
func (w *chunkWriter) empty() error {
	l := w.leaf(physical(w.decl.Type), w.e.codec, w.decl.Name)
	if w.rows > 0 {
		s := w.next(span{}, w.rows)
		w.begin(s)
		if err := w.end(l, format.Plain, s, bounds{}); err != nil {
			return err
		}
	}
	w.finish(l, bounds{})
	return nil
}
