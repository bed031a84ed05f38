package kineto

// A slot is one thing that an event can say and that tracelake understands: a
// key of the event or of its args. While an event is decoded its values stand
// in slots; at its end they go to the columns of the table it belongs to.
type slot = int

// valueKind is how the value of a slot is decoded and stored.
type valueKind uint8

const (
	kindInt   valueKind = iota // integer
	kindFloat                  // bits of a float64
	kindText                   // number of a string
	kindJSON                   // number of a string that holds compact JSON
	kindTime                   // nanoseconds
	kindDims                   // position in the decoder's list of three-part sizes
	kindWho                    // a process or thread: integer, or text in the slot behind
	kindNone                   // of a key without a slot
)

// Slots of the keys of an event itself.
const (
	slotPh slot = iota
	slotCat
	slotName
	slotPID
	slotPIDText
	slotTID
	slotTIDText
	slotTS
	slotDur
	slotID
	slotIDText
	slotScope
	slotBP
	slotFirstArg // the slots from here on are keys of args
)

// Slots of args that the decoder looks at itself. The rest are known by name
// only, in argKeys and in the columns of tables.
const (
	slotCorrelation slot = slotFirstArg + iota
	slotGraphID
	slotGraphNode
	slotGrid
	slotBlock
	slotArgName
	slotArgLabels
	slotSortIndex
	slotDevice
	slotInDevice
	slotExternalID
	slotNextArg
)

type keyDef struct {
	slot  slot
	kind  valueKind
	name  string
	alias []string
}

var topKeys = []keyDef{
	{slotPh, kindText, "ph", nil},
	{slotCat, kindText, "cat", nil},
	{slotName, kindText, "name", nil},
	{slotPID, kindWho, "pid", nil},
	{slotTID, kindWho, "tid", nil},
	{slotTS, kindTime, "ts", nil},
	{slotDur, kindTime, "dur", nil},
	{slotID, kindWho, "id", nil},
	{slotScope, kindText, "s", nil},
	{slotBP, kindText, "bp", nil},
}

// argKeys lists the argument keys with a column, by producer spelling.
var argKeys = []keyDef{
	{slotCorrelation, kindInt, "correlation", nil},
	{slotGraphID, kindInt, "graph id", nil},
	{slotGraphNode, kindInt, "graph node id", nil},
	{slotGrid, kindDims, "grid", []string{"grid dim"}},
	{slotBlock, kindDims, "block", []string{"block dim"}},
	{slotArgName, kindText, "name", nil},
	{slotArgLabels, kindText, "labels", nil},
	{slotSortIndex, kindInt, "sort_index", nil},
	{slotDevice, kindInt, "device", nil},
	{slotInDevice, kindInt, "inDevice", nil},
	{slotExternalID, kindInt, "External id", []string{"external id"}},
	{-1, kindInt, "context", nil},
	{-1, kindInt, "stream", nil},
	{-1, kindInt, "shared memory", []string{"shared size"}},
	{-1, kindInt, "registers per thread", nil},
	{-1, kindFloat, "blocks per SM", nil},
	{-1, kindFloat, "warps per SM", nil},
	{-1, kindFloat, "est. achieved occupancy %", nil},
	{-1, kindInt, "queued", nil},
	{-1, kindInt, "priority", nil},
	{-1, kindInt, "bytes", nil},
	{-1, kindFloat, "memory bandwidth (GB/s)", nil},
	{-1, kindInt, "fromDevice", nil},
	{-1, kindInt, "toDevice", nil},
	{-1, kindText, "Collective name", nil},
	{-1, kindText, "dtype", nil},
	{-1, kindInt, "In msg nelems", nil},
	{-1, kindInt, "Out msg nelems", nil},
	{-1, kindInt, "Group size", nil},
	{-1, kindText, "Process Group Name", nil},
	{-1, kindText, "Process Group Description", nil},
	{-1, kindText, "Process Group Ranks", nil},
	{-1, kindText, "In split size", nil},
	{-1, kindText, "Out split size", nil},
	{-1, kindInt, "Seq", nil},
	{-1, kindInt, "Src Rank", nil},
	{-1, kindInt, "Dst Rank", nil},
	{-1, kindInt, "cbid", nil},
	{-1, kindText, "kernel", []string{"Kernel"}},
	{-1, kindInt, "Ev Idx", []string{"Profiler Event Index"}},
	{-1, kindInt, "Record function id", nil},
	{-1, kindInt, "Sequence number", nil},
	{-1, kindInt, "Fwd thread id", nil},
	{-1, kindJSON, "Input Dims", []string{"Input dims"}},
	{-1, kindJSON, "Input type", nil},
	{-1, kindJSON, "Input Strides", nil},
	{-1, kindJSON, "Concrete Inputs", nil},
	{-1, kindText, "Call stack", nil},
	{-1, kindText, "Module Hierarchy", nil},
	{-1, kindInt, "flops", nil},
	{-1, kindInt, "Python id", nil},
	{-1, kindInt, "Python parent id", nil},
	{-1, kindInt, "Python module id", nil},
	{-1, kindInt, "Addr", nil},
	{-1, kindInt, "Bytes", nil},
	{-1, kindInt, "Total Allocated", nil},
	{-1, kindInt, "Total Reserved", nil},
	{-1, kindInt, "Device Type", nil},
	{-1, kindInt, "Device Id", nil},
}

// slotInfo is what the decoder needs to know about a slot.
type slotInfo struct {
	kind valueKind
	name string
	arg  bool
}

const maxSlots = 128 // slots of an event are kept in two machine words

var (
	slots   []slotInfo
	topSlot = map[string]slot{}
	argSlot = map[string]slot{}
)

func init() {
	slots = make([]slotInfo, slotNextArg)
	for _, k := range topKeys {
		slots[k.slot] = slotInfo{kind: k.kind, name: k.name}
		topSlot[k.name] = k.slot
	}
	for _, s := range []slot{slotPIDText, slotTIDText, slotIDText} {
		slots[s] = slotInfo{kind: kindText, name: slots[s-1].name}
	}
	for _, k := range argKeys {
		s := k.slot
		if s < 0 {
			s = len(slots)
			slots = append(slots, slotInfo{})
		}
		slots[s] = slotInfo{kind: k.kind, name: k.name, arg: true}
		argSlot[k.name] = s
		for _, a := range k.alias {
			argSlot[a] = s
		}
	}
	if len(slots) > maxSlots {
		panic("kineto: more slots than two words hold")
	}
	initTables()
	initColumns()
}

// slotSet is a set of slots.
type slotSet [2]uint64

func (s *slotSet) add(x slot)      { s[x>>6&1] |= 1 << (x & 63) }
func (s *slotSet) del(x slot)      { s[x>>6&1] &^= 1 << (x & 63) }
func (s *slotSet) has(x slot) bool { return s[x>>6&1]>>(x&63)&1 == 1 }

// argSlots are the slots of args.
var argSlots = func() (s slotSet) {
	for i := slotFirstArg; i < maxSlots; i++ {
		s.add(i)
	}
	return s
}()
