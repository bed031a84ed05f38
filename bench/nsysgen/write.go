package main

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

type options struct {
	kernels, processes, perIteration, names int64
	seed                                    uint64
}

// writer writes rows with prepared statements.
type writer struct {
	conn  *sqlite.Conn
	stmts map[string]*sqlite.Stmt
	err   error
}

// null stands for NULL in a row.
const null = int64(-1 << 63)

// row inserts values: integers and texts.
func (w *writer) row(table string, values ...any) {
	if w.err != nil {
		return
	}
	s := w.stmts[table]
	if s == nil {
		marks := strings.TrimSuffix(strings.Repeat("?,", len(values)), ",")
		if s, w.err = w.conn.Prepare("INSERT INTO " + table + " VALUES (" + marks + ")"); w.err != nil {
			return
		}
		w.stmts[table] = s
	}
	for i, v := range values {
		switch v := v.(type) {
		case string:
			s.BindText(i+1, v)
		case int:
			s.BindInt64(i+1, int64(v))
		case int64:
			if v == null {
				s.BindNull(i + 1)
			} else {
				s.BindInt64(i+1, v)
			}
		}
	}
	if _, w.err = s.Step(); w.err == nil {
		w.err = s.Reset()
	}
}

// integers inserts a row of integers without boxing them.
func (w *writer) integers(table string, values []int64) {
	if w.err != nil {
		return
	}
	s := w.stmts[table]
	if s == nil {
		marks := strings.TrimSuffix(strings.Repeat("?,", len(values)), ",")
		if s, w.err = w.conn.Prepare("INSERT INTO " + table + " VALUES (" + marks + ")"); w.err != nil {
			return
		}
		w.stmts[table] = s
	}
	for i, v := range values {
		if v == null {
			s.BindNull(i + 1)
		} else {
			s.BindInt64(i+1, v)
		}
	}
	if _, w.err = s.Step(); w.err == nil {
		w.err = s.Reset()
	}
}

func write(path string, o options) (err error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadWrite|sqlite.OpenCreate)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	script := []string{"PRAGMA journal_mode=OFF", "PRAGMA synchronous=OFF", "BEGIN"}
	for _, t := range tables {
		script = append(script, "CREATE TABLE "+t.name+" ("+t.columns+")")
	}
	for _, sql := range script {
		if err := sqlitex.ExecuteTransient(conn, sql, nil); err != nil {
			return err
		}
	}
	w := &writer{conn: conn, stmts: map[string]*sqlite.Stmt{}}
	w.header(o)
	w.events(o)
	if w.err != nil {
		return w.err
	}
	return sqlitex.ExecuteTransient(conn, "COMMIT", nil)
}

// Global IDs hold the process above 24 bits of thread.
func globalID(pid, tid int64) int64 { return 1<<48 | pid<<24 | tid }

func pid(p int64) int64 { return 40_000 + 17*p }

const firstKernelName = 100

func (w *writer) header(o options) {
	for i := range o.names {
		short := fmt.Sprintf("kernel_%d", i)
		w.row("StringIds", firstKernelName+2*i, fmt.Sprintf("void fused::%s<float, (int)%d>(float *, const float *, int)", short, i%7))
		w.row("StringIds", firstKernelName+2*i+1, short)
	}
	w.row("StringIds", 1, "cudaLaunchKernel_v7000")
	w.row("META_DATA_EXPORT", "EXPORT_SCHEMA_VERSION", "3.28.1")
	w.row("META_DATA_EXPORT", "EXPORT_PRODUCT_VERSION", "2026.4.1")
	w.row("META_DATA_CAPTURE", "DEVICE_DISPLAY_NAME", "generated")
	w.row("TARGET_INFO_SESSION_START_TIME", int64(1_790_000_000_123_456_789), "", "", int64(515_396_806_359_142))
	for p := range o.processes {
		uuid := fmt.Sprintf("00000000-0000-0000-0000-%012d", p)
		w.row("TARGET_INFO_GPU", 0, p, "NVIDIA H100 80GB HBM3", "", int64(85_029_158_912), 132, uuid, 9, 0)
		w.row("TARGET_INFO_CUDA_DEVICE", p, 0, pid(p), null, 132)
	}
}

// event is a kernel and its launch.
type event struct {
	launch, returned, start, end, correlation int64
	process, n                                int64
}

// events writes kernels, their launches and the iterations in the order of a
// real export: GPU work and ranges by start, calls by thread.
func (w *writer) events(o options) {
	var all []event
	var ranges [][]any
	for p := range o.processes {
		list, marks := simulate(o, p)
		call := make([]int64, 8)
		for _, e := range list {
			copy(call, []int64{e.launch, e.returned, 0, globalID(pid(p), pid(p)), e.correlation, 1, 0, null})
			w.integers("CUPTI_ACTIVITY_KIND_RUNTIME", call)
		}
		all, ranges = append(all, list...), append(ranges, marks...)
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.start, b.start) })
	slices.SortStableFunc(ranges, func(a, b []any) int { return cmp.Compare(a[0].(int64), b[0].(int64)) })
	kernel := make([]int64, 38)
	for i := range kernel {
		kernel[i] = null
	}
	kernel[32], kernel[33], kernel[34], kernel[35] = 0, 0, 0, 1
	for _, e := range all {
		n := e.n
		name := firstKernelName + 2*((n*7+3)%o.names)
		// The order of the columns is that of tables.go.
		copy(kernel, []int64{
			e.start, e.end, 0, 1, 0, 7 + n%3*6, e.correlation, globalID(pid(e.process), 0), name, name + 1, name, 1, 1, 32 + n%12*8,
			1 + n*37%4096, 1 + n%4, 1, 128 + n%3*128, 1, 1, 0, n % 5 * 16384, 0, 95_813_632, n + 1, 32768,
		})
		w.integers("CUPTI_ACTIVITY_KIND_KERNEL", kernel)
	}
	for _, x := range ranges {
		w.row("NVTX_EVENTS", x...)
	}
}

// simulate runs one process: a thread that launches kernels, and a GPU that
// takes them one after another.
func simulate(o options, p int64) (list []event, ranges [][]any) {
	r := rand.New(rand.NewPCG(o.seed, uint64(p)))
	host, gpu, began := int64(1_000_000_000)+p*911, int64(0), int64(0)
	for n := int64(0); n*o.processes+p < o.kernels; n++ {
		if n%o.perIteration == 0 {
			began = host
		}
		host += 3_000 + r.Int64N(2_000)
		e := event{launch: host, correlation: 100 + 3*n, process: p, n: n}
		host += 1_500 + r.Int64N(500)
		e.returned = host
		e.start = max(gpu+800, e.launch+4_000+r.Int64N(1_000))
		e.end = e.start + 2_000 + r.Int64N(3_000)
		gpu = e.end
		list = append(list, e)
		if n%o.perIteration == o.perIteration-1 {
			text := fmt.Sprintf("stormlog.iteration/engine-%d/step-%d", p, n/o.perIteration)
			ranges = append(ranges, []any{began, host + 100, 59, null, null, null, text, globalID(pid(p), pid(p)), null, 0})
		}
	}
	return list, ranges
}
