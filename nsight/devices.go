package nsight

import (
	"context"
	"fmt"
	"sort"
	"strings"

	"tracelake/schema"
)

// Device is a GPU as one process numbers it.
type Device struct {
	Process  int64 // process key (Rows' global_pid); schema.Null for work that names none
	Ordinal  int64
	Name     string // "" where unknown, as in UUID
	UUID     string
	Memory   schema.Opt[int64] // bytes
	SMs      schema.Opt[int64]
	Major    schema.Opt[int64]
	Minor    schema.Opt[int64]
	WarpSize schema.Opt[int64]
}

// gpu is a GPU of the machine.
type gpu struct {
	name, uuid                    string
	memory, sms, major, minor, id int64
	warp                          int64
}

// normalUUID adds the prefix that NVIDIA's tools print.
func normalUUID(s string) string {
	if s == "" || strings.HasPrefix(s, "GPU-") || strings.HasPrefix(s, "MIG-") {
		return s
	}
	return "GPU-" + s
}

// devices names the devices that GPU work ran on. An ordinal counts within a
// process, after CUDA_VISIBLE_DEVICES: only TARGET_INFO_CUDA_DEVICE says which
// GPU it is, unless the machine has but one.
func (r *reader) devices(ctx context.Context, g *gpuTables) error {
	gpus, order, err := r.gpus(ctx)
	if err != nil {
		return err
	}
	type key struct{ process, ordinal int64 }
	mapped := map[key]*gpu{}
	err = r.scan(ctx, "TARGET_INFO_CUDA_DEVICE", append(ints("pid", "cudaId", "gpuId"), want{"uuid", text}), func(b *batch) error {
		for i := range b.n {
			pid, ordinal, id := cell(b, 0, i), cell(b, 1, i), cell(b, 2, i)
			uuid := ""
			if n := cell(b, 3, i); n != schema.Null {
				uuid = normalUUID(b.texts.list[n])
			}
			found := gpus[id]
			switch {
			case pid == schema.Null || ordinal == schema.Null:
				continue
			case uuid != "" && found != nil && found.uuid != "" && found.uuid != uuid:
				r.note(schema.UnnamedGPU, 1, fmt.Sprintf("the report names both %s and %s for device %d of process %d", uuid, found.uuid, ordinal, pid))
				continue
			case uuid != "":
				named := &gpu{uuid: uuid, memory: schema.Null, sms: schema.Null, major: schema.Null, minor: schema.Null, warp: schema.Null}
				if found != nil {
					*named = *found
				}
				for _, o := range order {
					if o.uuid == uuid {
						*named = *o
					}
				}
				named.uuid = uuid
				found = named
			}
			if found != nil && len(mapped) < 1<<20 {
				mapped[key{pid, ordinal}] = found
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	byOrdinal, err := r.oldGPUs(ctx)
	if err != nil {
		return err
	}
	unnamed := []string{}
	for _, k := range usedDevices(g) {
		d := Device{Process: k[0], Ordinal: k[1]}
		x := mapped[key{processID(k[0]), k[1]}]
		switch {
		case k[0] == schema.Null:
			x = nil
		case x != nil:
		case len(order) == 1 && k[1] == 0:
			x = order[0]
		default:
			x = byOrdinal[k[1]]
		}
		if x != nil {
			d.Name, d.UUID = x.name, x.uuid
			d.Memory, d.SMs, d.Major, d.Minor, d.WarpSize = schema.OptInt(x.memory), schema.OptInt(x.sms), schema.OptInt(x.major), schema.OptInt(x.minor), schema.OptInt(x.warp)
		}
		if d.UUID == "" && k[1] != schema.Null {
			of := "device " + fmt.Sprint(k[1])
			if k[0] != schema.Null {
				of = fmt.Sprintf("process %d device %d", processID(k[0]), k[1])
			}
			unnamed = append(unnamed, of)
		}
		r.res.Devices = append(r.res.Devices, d)
		r.hash(d.Name+" "+d.UUID, uint64(k[1]))
	}
	if len(unnamed) > 0 {
		more := ""
		if len(unnamed) > 5 {
			more = fmt.Sprintf(" and %d more", len(unnamed)-5)
		}
		r.note(schema.UnnamedGPU, int64(len(unnamed)), "the report does not name the GPU of "+strings.Join(unnamed[:min(5, len(unnamed))], ", ")+more)
	}
	return nil
}

// gpus reads the GPUs of the machine by their number.
func (r *reader) gpus(ctx context.Context) (map[int64]*gpu, []*gpu, error) {
	byID := map[int64]*gpu{}
	var order []*gpu
	wants := append(ints("id", "totalMemory", "smCount", "computeMajor", "computeMinor", "threadsPerWarp"), want{"name", text}, want{"uuid", text})
	err := r.scan(ctx, "TARGET_INFO_GPU", wants, func(b *batch) error {
		for i := range b.n {
			id := cell(b, 0, i)
			if id == schema.Null || len(order) == 4096 {
				continue
			}
			x := &gpu{id: id, memory: cell(b, 1, i), sms: cell(b, 2, i), major: cell(b, 3, i), minor: cell(b, 4, i), warp: cell(b, 5, i)}
			if n := cell(b, 6, i); n != schema.Null {
				x.name = b.texts.list[n]
			}
			if n := cell(b, 7, i); n != schema.Null {
				x.uuid = normalUUID(b.texts.list[n])
			}
			if byID[id] == nil {
				order = append(order, x)
			} else {
				*byID[id] = *x
				continue
			}
			byID[id] = x
		}
		return nil
	})
	return byID, order, err
}

// oldGPUs reads the table of exports of early 2021, which knows no processes.
func (r *reader) oldGPUs(ctx context.Context) (map[int64]*gpu, error) {
	out := map[int64]*gpu{}
	wants := append(ints("deviceId", "globalMemorySize", "numMultiprocessors", "computeCapabilityMajor", "computeCapabilityMinor"), want{"name", text})
	err := r.scan(ctx, "TARGET_INFO_CUDA_GPU", wants, func(b *batch) error {
		for i := range b.n {
			id := cell(b, 0, i)
			if id == schema.Null || len(out) == 4096 {
				continue
			}
			x := &gpu{id: id, memory: cell(b, 1, i), sms: cell(b, 2, i), major: cell(b, 3, i), minor: cell(b, 4, i), warp: schema.Null}
			if n := cell(b, 5, i); n != schema.Null {
				x.name = b.texts.list[n]
			}
			out[id] = x
		}
		return nil
	})
	return out, err
}

// usedDevices lists the pairs of process key and ordinal that GPU work ran on,
// in order.
func usedDevices(g *gpuTables) (out [][2]int64) {
	seen := map[[2]int64]bool{}
	a, b := make([]int64, blockRows), make([]int64, blockRows)
	for _, t := range g.all() {
		if t.n == 0 {
			continue
		}
		pid, dev := t.col("globalPid"), t.col("deviceId")
		for i := range pid.segs {
			pid.segs[i].fill(a)
			dev.segs[i].fill(b)
			last := [2]int64{1, 1}
			for k := range pid.segs[i].rows {
				x := [2]int64{a[k], b[k]}
				if x == last {
					continue
				}
				last = x
				if x[0] != schema.Null {
					x[0] = processKey(x[0])
				}
				if !seen[x] && len(seen) < 1<<20 {
					seen[x] = true
					out = append(out, x)
				}
			}
		}
	}
	sort.Slice(out, func(i, j int) bool {
		if out[i][1] != out[j][1] {
			return out[i][1] < out[j][1]
		}
		return out[i][0] < out[j][0]
	})
	return out
}
