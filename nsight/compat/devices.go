package compat

import (
	"fmt"
	"slices"
	"strings"

	"tracelake/schema"
)

// gpu is what a report says about a GPU.
type gpu struct{ uuid, name schema.Opt[string] }

// devices finds the GPU behind an ordinal of a process.
type devices struct {
	byProcess map[[2]int64]gpu
	only      schema.Opt[gpu]
	note      string
}

func (d *devices) lookup(pid, device int64) gpu {
	if pid != schema.Null && device != schema.Null {
		if g, ok := d.byProcess[[2]int64{pid, device}]; ok {
			return g
		}
	}
	if device == 0 && d.only.OK {
		return d.only.V
	}
	return gpu{}
}

func normal(v value) schema.Opt[string] {
	if !truth(v) {
		return schema.Opt[string]{}
	}
	s := str(v)
	if !strings.HasPrefix(s, "GPU-") && !strings.HasPrefix(s, "MIG-") {
		s = "GPU-" + s
	}
	return schema.Some(s)
}

func (l *loader) devices() (*devices, error) {
	gpus := map[int64]gpu{}
	var order []int64 // of first appearance
	if l.tables["TARGET_INFO_GPU"] {
		err := l.rows("select id, name, uuid from TARGET_INFO_GPU", func(v []value) error {
			if v[0] == nil {
				return nil
			}
			id, err := toInt(v[0])
			if err != nil {
				return err
			}
			g := gpu{uuid: normal(v[2])}
			if v[1] != nil {
				g.name = schema.Some(str(v[1]))
			}
			if _, ok := gpus[id]; !ok {
				order = append(order, id)
			}
			gpus[id] = g
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	d := &devices{byProcess: map[[2]int64]gpu{}}
	if len(order) == 1 {
		d.only = schema.Some(gpus[order[0]])
	}
	if !l.tables["TARGET_INFO_CUDA_DEVICE"] {
		if len(gpus) > 1 {
			d.note = "this export does not say which GPU each process's CUDA devices are; " +
				"re-export the report with nsys 2025.1 or later to name them"
		}
		return d, nil
	}
	have, err := l.columns("TARGET_INFO_CUDA_DEVICE")
	if err != nil {
		return nil, err
	}
	uuid := "NULL"
	if have["uuid"] {
		uuid = "uuid"
	}
	named := map[string]schema.Opt[string]{} // later GPUs win
	for _, id := range order {
		if u := gpus[id].uuid; u.OK {
			named[u.V] = gpus[id].name
		}
	}
	return d, l.rows("select pid, cudaId, gpuId, "+uuid+" from TARGET_INFO_CUDA_DEVICE", func(v []value) error {
		listed, isListed := gpu{}, false
		if v[2] != nil {
			id, err := toInt(v[2])
			if err != nil {
				return err
			}
			listed, isListed = gpus[id]
		}
		direct := normal(v[3])
		if direct.OK && isListed && listed.uuid.OK && listed.uuid != direct {
			return &Error{fmt.Sprintf("malformed Nsight Systems SQLite export: TARGET_INFO_CUDA_DEVICE names process %s's device %s both %s and GPU %s (%s)",
				str(v[0]), str(v[1]), direct.V, str(v[2]), listed.uuid.V)}
		}
		found, ok := listed, isListed
		if direct.OK {
			name, known := named[direct.V]
			if !known && isListed {
				name = listed.name
			}
			found, ok = gpu{uuid: direct, name: name}, true
		}
		if v[0] == nil || v[1] == nil || !ok {
			return nil
		}
		pid, err := toInt(v[0])
		if err != nil {
			return err
		}
		ordinal, err := toInt(v[1])
		if err != nil {
			return err
		}
		d.byProcess[[2]int64{pid, ordinal}] = found
		return nil
	})
}

// noteUnnamed lists the devices without a UUID, in the order of their texts.
func (l *loader) noteUnnamed() {
	g := &l.t.GPU
	number := func(v int64) string {
		if v == schema.Null {
			return "None"
		}
		return fmt.Sprint(v)
	}
	type device struct{ text, key string }
	var list []device
	seen := map[[2]int64]bool{}
	for i := range g.Len() {
		k := [2]int64{g.PID[i], g.Device[i]}
		if g.UUID[i] != 0 || seen[k] {
			continue
		}
		seen[k] = true
		p, d := number(k[0]), number(k[1])
		list = append(list, device{"process " + p + " device " + d, "(" + p + ", " + d + ")"})
	}
	if len(list) == 0 {
		return
	}
	slices.SortFunc(list, func(a, b device) int { return strings.Compare(a.key, b.key) })
	var texts []string
	for _, d := range list[:min(5, len(list))] {
		texts = append(texts, d.text)
	}
	note := "the report does not name the GPU of " + strings.Join(texts, ", ")
	if len(list) > 5 {
		note += fmt.Sprintf(" and %d more", len(list)-5)
	}
	l.t.Notes = append(l.t.Notes, note)
}
