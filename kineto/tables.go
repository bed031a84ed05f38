package kineto

import (
	"strings"

	"tracelake/schema"
)

// tableID numbers the tables that events go to.
type tableID int

const (
	tabGPU tableID = iota
	tabLaunches
	tabRanges
	tabBeginEnd // begin and end events on their way to cpu_events
	tabCPU
	tabInstants
	tabCounters
	tabFlows
	tabMetadata
	numTables
)

// retained tables stay in memory until the end of the file: their rows need
// linking or pairing.
func (t tableID) retained() bool { return t <= tabBeginEnd }

// tableSpec says where the slots of an event go in its table.
type tableSpec struct {
	table   *schema.Table
	slotCol [maxSlots]int16 // column of a slot, -1 where it goes to args_json
	special slotSet         // slots that finish stores itself
	col     map[string]int
}

// c returns the position of a column that exists.
func (s *tableSpec) c(name string) int {
	i, ok := s.col[name]
	if !ok {
		panic("kineto: no column " + s.table.Name + "." + name)
	}
	return i
}

var specs [numTables]tableSpec

// slotColumns maps key names to column names where they agree in all tables
// that have the column.
var slotColumns = map[string]string{
	"cat": "category", "name": "name", "s": "scope", "bp": "bind_point", "ph": "phase",
	"correlation": "correlation", "graph id": "graph_id", "graph node id": "graph_node_id",
	"device": "device", "inDevice": "in_device", "External id": "external_id",
	"context": "context", "stream": "stream", "shared memory": "shared_memory_bytes",
	"registers per thread": "registers_per_thread", "blocks per SM": "blocks_per_sm",
	"warps per SM": "warps_per_sm", "est. achieved occupancy %": "occupancy_pct",
	"queued": "queued", "priority": "priority", "bytes": "bytes",
	"memory bandwidth (GB/s)": "bandwidth_gbps", "fromDevice": "from_device", "toDevice": "to_device",
	"Collective name": "collective_name", "dtype": "collective_dtype",
	"In msg nelems": "in_msg_nelems", "Out msg nelems": "out_msg_nelems", "Group size": "group_size",
	"Process Group Name": "process_group_name", "Process Group Description": "process_group_desc",
	"Process Group Ranks": "process_group_ranks", "In split size": "in_split_size",
	"Out split size": "out_split_size", "Seq": "collective_seq", "Src Rank": "src_rank", "Dst Rank": "dst_rank",
	"cbid": "cbid", "kernel": "kernel", "Ev Idx": "ev_idx", "Record function id": "record_function_id",
	"Sequence number": "sequence_number", "Fwd thread id": "fwd_thread_id",
	"Input Dims": "input_dims", "Input type": "input_types", "Input Strides": "input_strides",
	"Concrete Inputs": "concrete_inputs", "Call stack": "call_stack", "Module Hierarchy": "module_hierarchy",
	"flops": "flops", "Python id": "python_id", "Python parent id": "python_parent_id",
	"Python module id": "python_module_id",
	"Addr":             "addr", "Total Allocated": "total_allocated_bytes", "Total Reserved": "total_reserved_bytes",
	"Device Type": "device_type", "Device Id": "device_id",
}

// phaseColumn is the extra column that begin and end events carry.
const phaseColumn = "phase"

func initTables() {
	beginEnd := schema.TableCPUEvents
	beginEnd.Columns = append(append([]schema.Column(nil), beginEnd.Columns...), schema.Column{Name: phaseColumn, Type: schema.String})
	for id, t := range [numTables]*schema.Table{
		tabGPU: &schema.TableGPUEvents, tabLaunches: &schema.TableLaunches, tabRanges: &schema.TableRanges,
		tabBeginEnd: &beginEnd, tabCPU: &schema.TableCPUEvents, tabInstants: &schema.TableInstants,
		tabCounters: &schema.TableCounters, tabFlows: &schema.TableFlows, tabMetadata: &schema.TableMetadata,
	} {
		s := &specs[id]
		s.table, s.col = t, map[string]int{}
		for i, c := range t.Columns {
			s.col[c.Name] = i
		}
		for x := range s.slotCol {
			s.slotCol[x] = -1
		}
		for x := range slots {
			if x == slotArgName {
				continue // a thread's name is no event's name
			}
			if col, ok := s.col[slotColumns[slots[x].name]]; ok {
				s.slotCol[x] = int16(col)
			}
		}
		s.place(slotPID, "pid")
		s.place(slotPIDText, "pid_text")
		s.place(slotTID, "tid")
		s.place(slotTIDText, "tid_text")
		s.special.add(slotTS)
		s.special.add(slotDur)
		switch tableID(id) {
		case tabGPU, tabLaunches:
			s.special.add(slotGrid)
			s.special.add(slotBlock)
			if tableID(id) == tabLaunches {
				s.place(slotName, "api")
			}
		case tabFlows:
			s.place(slotID, "id")
			s.place(slotIDText, "id_text")
		case tabInstants:
			s.place(argSlot["Bytes"], "bytes")
			s.slotCol[argSlot["bytes"]] = -1
			s.special.add(slotID)
			s.place(slotIDText, "id")
		case tabCounters:
			s.special.add(slotID)
			s.place(slotIDText, "id")
		case tabMetadata:
			s.place(slotArgName, "value")
			s.place(slotArgLabels, "value")
			s.place(slotSortIndex, "sort_index")
		}
		if tableID(id) != tabInstants && tableID(id) != tabFlows && tableID(id) != tabBeginEnd {
			s.special.add(slotPh) // told by the table
		}
	}
}

func (s *tableSpec) place(x slot, col string) { s.slotCol[x] = int16(s.c(col)) }

// class is what the category of a duration event makes of it.
type class uint8

const (
	classUnknown class = iota // not looked at yet
	classOther
	classKernel
	classMemcpy
	classMemset
	classLaunch
	classRange
	classGPURange
	classOperator // a range where the name marks a step
)

// classify tells the table of a category. Names of 2021 (Kernel, Runtime, …)
// count like today's.
func classify(cat string) class {
	switch cat {
	case "kernel", "Kernel":
		return classKernel
	case "gpu_memcpy", "Memcpy":
		return classMemcpy
	case "gpu_memset", "Memset":
		return classMemset
	case "user_annotation":
		return classRange
	case "gpu_user_annotation", "User":
		return classGPURange
	case "Runtime", "Driver":
		return classLaunch
	case "cpu_op", "Operator":
		return classOperator
	}
	if strings.HasSuffix(cat, "_runtime") || strings.HasSuffix(cat, "_driver") {
		return classLaunch
	}
	return classOther
}

// colOf holds the positions of columns that finish stores itself.
var colOf [numTables]struct {
	start, dur, end, flag, kind, onGPU, grid, block int
	series, value, valueInt, valueText              int
}

var slotStream slot

func initColumns() {
	slotStream = argSlot["stream"]
	for s := range slots {
		if c := specs[tabCPU].slotCol[s]; c >= 0 {
			slotOfColumn[int(c)] = s
		}
	}
	for id := range specs {
		s, c := &specs[id], &colOf[id]
		find := func(name string) int {
			if i, ok := s.col[name]; ok {
				return i
			}
			return -1
		}
		c.start, c.dur, c.end, c.flag = find("start_ns"), find("dur_ns"), find("end_ns"), find("time_flag")
		c.kind, c.onGPU, c.grid, c.block = find("kind"), find("on_gpu"), find("grid_x"), find("block_x")
		c.series, c.value, c.valueInt, c.valueText = find("series"), find("value"), find("value_int"), find("value_text")
	}
}
