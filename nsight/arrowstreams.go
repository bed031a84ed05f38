package nsight

import (
	"encoding/binary"
	"io"

	"github.com/apache/arrow-go/v18/arrow/ipc"

	"tracelake/internal/regular"
)

// walked is where the streams of a file stand.
type walked struct {
	streams [][2]int64
	cut     bool  // the last one has no end mark
	batches int64 // of all streams
}

// walkStreams finds streams that follow each other by the lengths of their
// messages, so that no library is asked to read more than there is.
func walkStreams(r io.ReaderAt, size int64) (w walked, err error) {
	at, start := int64(0), int64(-1)
	for at < size {
		var b [8]byte
		if _, err := r.ReadAt(b[:min(8, size-at)], at); err != nil {
			return w, err
		}
		if size-at < 8 || binary.LittleEndian.Uint32(b[:]) != 0xffffffff {
			return w, reject("no Arrow message at byte %d: the file is damaged or cut", at)
		}
		n := int64(binary.LittleEndian.Uint32(b[4:]))
		if n == 0 { // end of the stream
			if start >= 0 {
				w.streams = append(w.streams, [2]int64{start, at + 8})
			}
			start = -1
			at += 8
			continue
		}
		if n > size-at-8 || n > maxLineBytes {
			return w, reject("the file is cut within the Arrow message at byte %d", at)
		}
		meta := make([]byte, n)
		if _, err := r.ReadAt(meta, at+8); err != nil {
			return w, err
		}
		kind, body, ok := message(meta)
		if !ok || body < 0 || body > size-at-8-n {
			return w, reject("the file is damaged or cut within the Arrow message at byte %d", at)
		}
		if kind == schemaMessage {
			if start >= 0 { // a stream without an end mark
				w.streams = append(w.streams, [2]int64{start, at})
			}
			start = at
		} else if start < 0 {
			return w, reject("the Arrow message at byte %d belongs to no table", at)
		}
		if kind == batchMessage {
			w.batches++
		}
		if len(w.streams) > maxTables {
			return w, reject("more than %d tables", maxTables)
		}
		at += 8 + n + body
	}
	if start >= 0 {
		w.streams, w.cut = append(w.streams, [2]int64{start, size}), true
	}
	return w, nil
}

// openStreams opens one file with a stream per table.
func openStreams(path string) (tables, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	w, err := walkStreams(f, st.Size())
	if err != nil {
		return nil, err
	}
	d := &directory{kind: "arrows", files: map[string]tableFile{}, size: st.Size(), shut: func() error { return nil }}
	if w.cut {
		d.cut = "the file ends without an end mark: tables or rows may be missing"
	}
	err = guarded(path, func() error {
		for i, s := range w.streams {
			r, err := ipc.NewReader(io.NewSectionReader(f, s[0], s[1]-s[0]), ipc.WithAllocator(bounded(st.Size())))
			if err != nil {
				return damaged(path, err)
			}
			meta := r.Schema().Metadata()
			name, ok := meta.GetValue("table_name")
			r.Release()
			if !ok {
				return reject("stream %d of %s has no table_name", i+1, path)
			}
			if t, ok := d.files[name].(*arrowTable); ok {
				t.streams = append(t.streams, s)
				continue
			}
			d.put(name, &arrowTable{path: path, streams: [][2]int64{s}})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}
