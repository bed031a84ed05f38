package compat

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"tracelake/nsight/internal/readonly"
	"tracelake/schema"
)

// Error is a report that the reference refuses, in its words where they are
// its own.
type Error struct{ Msg string }

func (e *Error) Error() string { return e.Msg }

// Load reads a report. What the reference refuses is an *Error.
func Load(path string) (*schema.Trace, error) {
	db, err := readonly.Open(path)
	if err != nil {
		return nil, refusal(err)
	}
	defer db.Close() //nolint:errcheck // only read
	l := &loader{conn: db.Conn, strings: map[int64]value{}, names: map[string]uint32{}}
	l.t = &schema.Trace{Source: "nsys", TraceID: schema.Some(filepath.Base(path)), DeviceNames: map[int64]string{}}
	l.t.Launches.FloatTicks = true
	if err := l.load(); err != nil {
		return nil, refusal(err)
	}
	return l.t, nil
}

// refusal words an error as the reference does.
func refusal(err error) error {
	var own *Error
	var te *typeError
	switch {
	case err == errDecode: //nolint:errorlint // our own value
		return &Error{"not an Nsight Systems SQLite export: " + errDecode.Error()}
	case errors.As(err, &own):
		return own
	case errors.As(err, &te):
		return &Error{"malformed Nsight Systems SQLite export: " + te.msg}
	case errors.Is(err, readonly.ErrLocked):
		return &Error{"not an Nsight Systems SQLite export: database is locked"}
	}
	code := sqlite.ErrCode(err)
	msg := code.Message()
	switch code.ToPrimary() {
	case sqlite.ResultError:
		i := strings.LastIndex(err.Error(), "no such ")
		if i < 0 {
			return &Error{err.Error()}
		}
		msg = err.Error()[i:]
	case sqlite.ResultCorrupt:
		msg = "database disk image is malformed"
	case sqlite.ResultNotADB:
		msg = "file is not a database"
	case sqlite.ResultBusy:
		msg = "database is locked"
	}
	return &Error{"not an Nsight Systems SQLite export: " + msg}
}

type loader struct {
	conn    *sqlite.Conn
	t       *schema.Trace
	tables  map[string]bool
	strings map[int64]value
	names   map[string]uint32
	base    int64
}

// rows runs a query and gives each row.
func (l *loader) rows(sql string, row func(v []value) error) error {
	var v []value
	return sqlitex.ExecuteTransient(l.conn, sql, &sqlitex.ExecOptions{ResultFunc: func(s *sqlite.Stmt) error {
		v = v[:0]
		for i := range s.ColumnCount() {
			x, err := column(s, i)
			if err != nil {
				return err
			}
			v = append(v, x)
		}
		return row(v)
	}})
}

func (l *loader) name(s string) uint32 {
	n, ok := l.names[s]
	if !ok {
		n = uint32(len(l.t.GPU.Names))
		l.names[s] = n
		l.t.GPU.Names = append(l.t.GPU.Names, s)
	}
	return n
}

// lookup returns the string of an ID; def where the ID is unknown.
func (l *loader) lookup(id value, def string) value {
	n, ok := id.(int64)
	if f, is := id.(float64); is && f == float64(int64(f)) {
		n, ok = int64(f), true
	}
	if ok {
		if s, known := l.strings[n]; known {
			return s
		}
	}
	return def
}

var cudaTables = []string{
	"CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET",
	"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "CUPTI_ACTIVITY_KIND_RUNTIME",
}

func (l *loader) load() error {
	l.tables = map[string]bool{}
	err := l.rows("select name from sqlite_master", func(v []value) error {
		l.tables[str(v[0])] = true
		return nil
	})
	if err != nil {
		return err
	}
	if !l.tables["StringIds"] || !l.tables["META_DATA_EXPORT"] && !l.tables["TARGET_INFO_SESSION_START_TIME"] {
		return &Error{"not an Nsight Systems SQLite export"}
	}
	if !slices.ContainsFunc(cudaTables, func(t string) bool { return l.tables[t] }) {
		return &Error{"no CUDA activity in this report; record with --trace=cuda"}
	}
	err = l.rows("select id, value from StringIds", func(v []value) error {
		if id, ok := v[0].(int64); ok {
			l.strings[id] = v[1]
		}
		return nil
	})
	for _, step := range []func() error{l.header, l.gpuWork, l.launches, l.graphRows, l.spans} {
		if err != nil {
			return err
		}
		err = step()
	}
	l.t.Launches.Names = l.t.GPU.Names
	slices.SortStableFunc(l.t.Spans, func(a, b schema.Span) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.TID, b.TID),
			cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	return err
}

func (l *loader) header() error {
	first := true
	if l.tables["TARGET_INFO_SESSION_START_TIME"] {
		err := l.rows("select utcEpochNs from TARGET_INFO_SESSION_START_TIME limit 1", func(v []value) (err error) {
			if v[0] != nil {
				l.base, err = toInt(v[0])
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	l.t.BaseNS = l.base
	if !l.tables["META_DATA_CAPTURE"] {
		return nil
	}
	return l.rows("select value from META_DATA_CAPTURE where name = 'DEVICE_DISPLAY_NAME'", func(v []value) error {
		if first {
			l.t.Host = schema.Some(str(v[0]))
			first = false
		}
		return nil
	})
}

func process(global int64) (pid, tid int64) { return global >> 24 & 0xffffff, global & 0xffffff }

func (l *loader) gpuWork() error {
	d, err := l.devices()
	if err != nil {
		return err
	}
	if d.note != "" {
		l.t.Notes = append(l.t.Notes, d.note)
	}
	for k, kind := range []schema.Kind{schema.Kernel, schema.Memcpy, schema.Memset} {
		if l.tables[cudaTables[k]] {
			if err := l.gpuTable(cudaTables[k], kind, d); err != nil {
				return err
			}
		}
	}
	if d.note == "" {
		l.noteUnnamed()
	}
	return nil
}

// columns returns the columns of a table.
func (l *loader) columns(table string) (map[string]bool, error) {
	out := map[string]bool{}
	err := l.rows("select name from pragma_table_info('"+table+"')", func(v []value) error {
		out[str(v[0])] = true
		return nil
	})
	return out, err
}

func (l *loader) gpuTable(table string, kind schema.Kind, d *devices) error {
	have, err := l.columns(table)
	if err != nil {
		return err
	}
	query := "select start, end, deviceId, streamId, correlationId, globalPid"
	for _, c := range []string{"shortName", "graphId", "graphNodeId"} {
		if !have[c] {
			c = "NULL"
		}
		query += ", " + c
	}
	g := &l.t.GPU
	return l.rows(query+" from "+table, func(v []value) error {
		pid := schema.Null
		if v[5] != nil {
			global, err := toInt(v[5])
			if err != nil {
				return err
			}
			pid, _ = process(global)
		}
		device, err := optional(v[2], false)
		if err != nil {
			return err
		}
		gpu := d.lookup(pid, device)
		start, err := toInt(v[0])
		if err != nil {
			return err
		}
		end, err := toInt(v[1])
		if err != nil {
			return err
		}
		var ids [4]int64 // stream, correlation, graph, node
		for i, c := range []int{3, 4, 7, 8} {
			if ids[i], err = optional(v[c], i == 1 || i == 2); err != nil {
				return err
			}
		}
		name := l.name(kind.String())
		if v[6] != nil {
			name = l.kernelName(l.lookup(v[6], kind.String()))
		}
		g.Start, g.End = append(g.Start, l.base+start), append(g.End, l.base+end)
		g.Kind, g.Name = append(g.Kind, kind), append(g.Name, name)
		g.Device, g.Stream = append(g.Device, device), append(g.Stream, ids[0])
		g.Correlation, g.Graph, g.GraphNode = append(g.Correlation, ids[1]), append(g.Graph, ids[2]), append(g.GraphNode, ids[3])
		g.PID = append(g.PID, pid)
		g.UUID, g.DeviceName = append(g.UUID, l.optionalName(gpu.uuid)), append(g.DeviceName, l.optionalName(gpu.name))
		return nil
	})
}

// kernelName numbers a name, which is null where a string of the report is.
func (l *loader) kernelName(v value) uint32 {
	if v != nil {
		return l.name(str(v))
	}
	if !l.t.NullName.OK {
		l.t.NullName = schema.Some(uint32(len(l.t.GPU.Names)))
		l.t.GPU.Names = append(l.t.GPU.Names, "")
	}
	return l.t.NullName.V
}

func (l *loader) optionalName(s schema.Opt[string]) uint32 {
	if !s.OK {
		return 0
	}
	return l.name(s.V) + 1
}

// optional is an integer that may be missing; zero is none where it says so.
func optional(v value, zeroIsNone bool) (int64, error) {
	if v == nil {
		return schema.Null, nil
	}
	n, err := toInt(v)
	if err == nil && n == 0 && zeroIsNone {
		n = schema.Null
	}
	return n, err
}

func (l *loader) launches() error {
	if !l.tables["CUPTI_ACTIVITY_KIND_RUNTIME"] {
		return nil
	}
	c := &l.t.Launches
	return l.rows("select start, globalTid, correlationId, nameId from CUPTI_ACTIVITY_KIND_RUNTIME", func(v []value) error {
		if !truth(v[2]) || v[1] == nil {
			return nil
		}
		global, err := toInt(v[1])
		if err != nil {
			return err
		}
		start, err := toInt(v[0])
		if err != nil {
			return err
		}
		correlation, err := toInt(v[2])
		if err != nil {
			return err
		}
		pid, tid := process(global)
		name, _ := l.lookup(v[3], "").(string)
		c.KeyPID, c.PID, c.TID = append(c.KeyPID, pid), append(c.PID, pid), append(c.TID, tid)
		c.Correlation = append(c.Correlation, correlation)
		c.Tick = append(c.Tick, schema.FloatTick(thousandth(start)))
		c.Name = append(c.Name, l.name(name))
		return nil
	})
}

func (l *loader) graphRows() error {
	if l.tables["CUPTI_ACTIVITY_KIND_GRAPH_TRACE"] {
		err := l.rows("select count(*) from CUPTI_ACTIVITY_KIND_GRAPH_TRACE", func(v []value) error {
			if n, _ := v[0].(int64); n > 0 {
				l.t.NotImported = map[string]int64{"graph_trace_rows": n}
				l.t.Notes = append(l.t.Notes, fmt.Sprintf("%d CUDA graph launches were recorded per graph, not per kernel, "+
					"and are not imported; record with --cuda-graph-trace=node", n))
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if l.t.GPU.Len() == 0 && l.t.NotImported == nil {
		l.t.Notes = append(l.t.Notes, "the report records CUDA calls but no GPU kernels, copies or memsets")
	}
	return nil
}
