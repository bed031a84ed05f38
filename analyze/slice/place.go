package slice

import (
	"context"
	"fmt"
	"strconv"
)

// who names a process or thread in the output: a number, or a text as JSON;
// "" for none.
type who string

func number(n int64) who { return who(strconv.FormatInt(n, 10)) }

// placer tells on which process and thread of the output an event stands. Rows
// of Kineto say it themselves. In a report of Nsight Systems GPU work belongs
// to the process that launched it; the output shows it, as Kineto does, under
// the number of the GPU and the stream.
type placer struct {
	nsys      bool
	processes map[int64]int64  // global_pid → process of the output
	order     map[int64]int64  // global_pid → its position
	devices   map[gpuKey]int64 // → number in the output
	names     map[int64]string // of GPUs
}

// gpuKey is a device ordinal of a process.
type gpuKey struct{ process, ordinal int64 }

// syncLane is added to a stream for what waits for it, as Kineto does: it
// overlaps the work on the stream.
const syncLane = 1_000_000

func (s *slicer) findPlaces(ctx context.Context) error {
	s.place.nsys = s.trace.text("source") == "nsys"
	if !s.place.nsys {
		return nil
	}
	if err := s.place.findProcesses(ctx, s); err != nil {
		return err
	}
	return s.place.findDevices(ctx, s)
}

// findProcesses numbers the processes of a report. Reports over several hosts
// repeat process IDs; every second one gets a number beyond all IDs.
func (p *placer) findProcesses(ctx context.Context, s *slicer) error {
	p.processes, p.order = map[int64]int64{}, map[int64]int64{}
	sql := "SELECT DISTINCT global_pid, pid FROM ("
	for i, t := range tables {
		if i > 0 {
			sql += " UNION ALL "
		}
		sql += "SELECT global_pid, pid FROM slice_" + t
	}
	found, err := s.all(ctx, sql+") WHERE global_pid IS NOT NULL ORDER BY global_pid LIMIT 65536")
	if err != nil {
		return err
	}
	taken := map[int64]bool{}
	for _, r := range found {
		global, _ := r.int("global_pid")
		pid, _ := r.int("pid")
		for taken[pid] {
			pid += 1 << 24 // process IDs have 24 bits
		}
		taken[pid] = true
		p.processes[global], p.order[global] = pid, int64(len(p.order))
	}
	return nil
}

// findDevices numbers the GPUs of a report: by their ordinal, or, where one
// ordinal means different GPUs in different processes, one after another.
func (p *placer) findDevices(ctx context.Context, s *slicer) error {
	p.devices, p.names = map[gpuKey]int64{}, map[int64]string{}
	found, err := s.all(ctx, `SELECT global_pid, ordinal, uuid, name FROM devices
WHERE trace_id = getvariable('slice_trace') AND ordinal IS NOT NULL AND gpu_events > 0 ORDER BY ordinal, global_pid NULLS FIRST LIMIT 65536`)
	if err != nil {
		return err
	}
	identity := func(r record) string {
		if u := r.text("uuid"); u != "" {
			return u
		}
		return fmt.Sprint(r.value("global_pid"), "/", r.value("ordinal"))
	}
	gpus, ordinals := map[string]int64{}, map[int64]string{}
	clash := false
	for _, r := range found {
		id := identity(r)
		o, _ := r.int("ordinal")
		if other, ok := ordinals[o]; ok && other != id {
			clash = true
		}
		ordinals[o] = id
	}
	for _, r := range found {
		id := identity(r)
		o, _ := r.int("ordinal")
		n, ok := gpus[id]
		if !ok {
			n = o
			if clash {
				n = int64(len(gpus))
			}
			gpus[id] = n
		}
		global, _ := r.int("global_pid")
		p.devices[gpuKey{global, o}] = n
		if p.names[n] == "" {
			p.names[n] = r.text("name")
		}
	}
	return nil
}

// device returns the number of the GPU of a row in the output.
func (p *placer) device(r record) (int64, bool) {
	o, ok := r.int("device")
	if !ok || !p.nsys {
		return o, ok
	}
	return p.gpu(r, o), true
}

// gpu returns the number in the output of a device ordinal of the process of a
// row.
func (p *placer) gpu(r record, ordinal int64) int64 {
	global, _ := r.int("global_pid")
	if n, ok := p.devices[gpuKey{global, ordinal}]; ok {
		return n
	}
	return ordinal
}

// correlation returns the correlation ID of a row in the output: those of
// Nsight Systems count within a process, in 32 bits.
func (p *placer) correlation(r record) (int64, bool) {
	c, ok := r.int("correlation")
	if ok && p.nsys {
		global, _ := r.int("global_pid")
		c += p.order[global] << 32
	}
	return c, ok
}

// process and thread of an event. onGPU is set for work on a stream.
func (p *placer) at(r record, onGPU bool) (pid, tid who) {
	if !p.nsys {
		return recorded(r, "pid"), recorded(r, "tid")
	}
	stream, streamed := r.int("stream")
	_, threaded := r.int("tid")
	if d, ok := p.device(r); ok && streamed && (onGPU || !threaded) {
		if !onGPU {
			stream += syncLane
		}
		return number(d), number(stream)
	}
	if r.value("global_pid") != nil {
		return p.host(r), recorded(r, "tid")
	}
	if series := r.text("series"); series != "" {
		return who(quoted(series + " Counters")), ""
	}
	return recorded(r, "pid"), recorded(r, "tid")
}

// host returns the process of a row of a report.
func (p *placer) host(r record) who {
	global, _ := r.int("global_pid")
	if n, ok := p.processes[global]; ok {
		return number(n)
	}
	return recorded(r, "pid")
}

// recorded returns the number or text of a column pair such as pid, pid_text.
func recorded(r record, name string) who {
	if n, ok := r.int(name); ok {
		return number(n)
	}
	if t, ok := r.value(name + "_text").(string); ok {
		return who(quoted(t))
	}
	return ""
}
