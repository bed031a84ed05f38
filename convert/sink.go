package convert

import (
	"os"

	"tracelake/internal/aside"
	"tracelake/internal/freelist"
	"tracelake/schema"
	"tracelake/schema/columnar"
	"tracelake/schema/lake"
)

// encoders keeps encoders between row groups.
type encoders struct {
	opts columnar.Options
	list freelist.List[*columnar.Encoder]
}

func newEncoders(o columnar.Options) *encoders {
	e := &encoders{opts: o}
	e.list.New = func() *columnar.Encoder { return columnar.NewEncoder(nil, o) }
	return e
}

func (e *encoders) get(t *schema.Table) (*columnar.Encoder, func()) {
	enc := e.list.Get()
	enc.Use(t)
	return enc, func() { e.list.Put(enc) }
}

// sink writes the tables of one trace. Row groups are encoded beside each
// other and appended in the order in which they came.
type sink struct {
	txn    *lake.Txn
	enc    *encoders
	gate   chan struct{} // one token per goroutine that may compute
	share  func() int    // how many of them are for this trace
	aside  *aside.File   // for what does not fit into memory
	id     string        // trace ID for Arrow files; "" for Parquet
	tables map[string]*tableSink
	order  []*tableSink
}

type tableSink struct {
	t       *schema.Table
	f       *os.File
	file    *columnar.File
	arrow   *columnar.ArrowWriter // instead of file
	waiting []*encoding
}

// encoding is a row group being encoded.
type encoding struct {
	done  chan struct{}
	chunk *columnar.Chunk
	err   error
}

// newSink creates the files of the wanted tables of a profiler trace. arrowID is the trace ID for
// Arrow files, which must know it from the start, and "" for Parquet.
func (c *importer) newSink(txn *lake.Txn, wanted func(string) bool, arrowID string) (*sink, error) {
	s := &sink{txn: txn, enc: c.enc, gate: c.gate, share: c.share, id: arrowID, tables: map[string]*tableSink{}}
	for _, t := range schema.TraceTables {
		if wanted(t.Name) {
			if err := s.create(t); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// create starts the file of a table.
func (s *sink) create(t *schema.Table) error {
	f, err := s.txn.Create(t.Name)
	if err != nil {
		return err
	}
	ts := &tableSink{t: t, f: f}
	if s.id != "" {
		ts.arrow, err = columnar.CreateArrow(f, t, s.id, s.enc.opts)
	} else {
		ts.file, err = columnar.Create(f, t, s.enc.opts)
	}
	if err != nil {
		return err
	}
	s.tables[t.Name] = ts
	s.order = append(s.order, ts)
	return nil
}

// rowGroup takes a row group, whose vectors belong to the sink until it calls
// release.
func (s *sink) rowGroup(t *schema.Table, rows int, cols []schema.Vector, release func()) error {
	ts := s.tables[t.Name]
	if ts == nil || rows == 0 {
		release()
		return nil
	}
	if ts.arrow != nil {
		defer release()
		return ts.arrow.Append(rows, cols)
	}
	x := &encoding{done: make(chan struct{})}
	ts.waiting = append(ts.waiting, x)
	encode := func() {
		defer close(x.done)
		s.gate <- struct{}{}
		defer func() { <-s.gate }()
		enc, put := s.enc.get(t)
		defer put()
		x.chunk, x.err = enc.Encode(rows, cols)
		release()
	}
	if s.alone(rows) {
		encode()
	} else {
		go encode()
	}
	return ts.drain(cap(s.gate))
}

// alone reports whether rows are better encoded by the goroutine that has them:
// they are few, or all processors have traces of their own. A goroutine costs the
// growth of its stack each time, more than some columns do.
func (s *sink) alone(rows int) bool { return rows < fewRows || s.share() < 2 }

const fewRows = 2048

// built takes the rows of a builder.
func (s *sink) built(b *builder) error {
	rows, cols := b.take()
	return s.rowGroup(b.t, rows, cols, func() {})
}

// chunk appends a row group that is encoded already.
func (s *sink) chunk(t *schema.Table, c *columnar.Chunk) error {
	ts := s.tables[t.Name]
	if ts == nil {
		return nil
	}
	if err := ts.drain(0); err != nil {
		return err
	}
	return ts.append(c)
}

func (ts *tableSink) append(c *columnar.Chunk) error {
	return ts.file.Append(c)
}

// drain appends what is encoded and waits until at most max row groups are
// still on their way.
func (ts *tableSink) drain(max int) error {
	for len(ts.waiting) > 0 {
		x := ts.waiting[0]
		select {
		case <-x.done:
		default:
			if len(ts.waiting) <= max {
				return nil
			}
			<-x.done
		}
		ts.waiting = ts.waiting[1:]
		if x.err != nil {
			return x.err
		}
		if err := ts.append(x.chunk); err != nil {
			return err
		}
	}
	return nil
}

// close completes all files and returns the rows by table.
func (s *sink) close(traceID string, meta map[string]string) (map[string]int64, error) {
	rows := map[string]int64{}
	for _, ts := range s.order {
		if err := ts.drain(0); err != nil {
			return nil, err
		}
		if ts.arrow != nil {
			st, err := ts.arrow.Close(traceID)
			if err != nil {
				return nil, err
			}
			rows[ts.t.Name] = st.Rows
			continue
		}
		n, _, err := ts.file.Close(traceID, meta)
		if err != nil {
			return nil, err
		}
		rows[ts.t.Name] = n
	}
	return rows, nil
}

// abandon waits for the goroutines of a sink that will not be closed.
func (s *sink) abandon() {
	for _, ts := range s.order {
		for _, x := range ts.waiting {
			<-x.done
		}
	}
}
