package report

import (
	"context"
	"fmt"

	"tracelake/analyze/query"
)

// Timeline is what ran on which stream.
type Timeline struct {
	Names   []string // what boxes refer to
	Devices []*Device
	LeftOut int64 // devices that are not drawn
}

// Device is a group of lanes with one time axis, which counts from the start of
// the trace.
type Device struct {
	Run, Rank, TraceID, Process, Ordinal, GPU any

	FirstNS, LastNS int64
	OffsetNS        any // start of the trace within its run; nil where clocks do not compare
	Events          int64
	CellNS          int64 // 0 where every event is a box
	Streams         int64 // of the device; Lanes can have fewer
	Lanes           []*Lane
}

// Lane is a stream. Its boxes are columns, as that makes the file smaller.
type Lane struct {
	Stream any
	Events int64

	Start []int64 // after the start of the trace, ns
	Dur   []int64 // ns
	Class []int   // index in Classes
	Name  []int   // index in Timeline.Names
	Count []int64 // events
	Busy  []int64 // their summed duration, ns
}

// Classes are what boxes have as their class.
var Classes = []string{"compute", "communication", "memory"}

func readTimeline(ctx context.Context, db *query.DB) (*Timeline, error) {
	t := &Timeline{}
	lanes, err := ownSQL("lanes")
	if err != nil {
		return nil, err
	}
	boxes, err := ownSQL("boxes")
	if err != nil {
		return nil, err
	}
	found, err := collect(ctx, db, lanes.SQL, nil)
	if err != nil {
		return nil, fmt.Errorf("lanes: %w", err)
	}
	at := map[[2]any]*Lane{}
	for _, v := range found {
		d, lane := t.add(v)
		at[[2]any{v[0], v[7]}] = lane
		d.Lanes = append(d.Lanes, lane)
	}
	rows, err := collect(ctx, db, boxes.SQL, nil)
	if err != nil {
		return nil, fmt.Errorf("boxes: %w", err)
	}
	names := map[string]int{}
	for _, v := range rows {
		lane := at[[2]any{v[0], v[1]}]
		name, _ := v[7].(string)
		name = shorten(name, maxBoxName)
		id, ok := names[name]
		if !ok {
			id = len(t.Names)
			names[name] = id
			t.Names = append(t.Names, name)
		}
		lane.Start = append(lane.Start, number(v[3]))
		lane.Dur = append(lane.Dur, number(v[4]))
		lane.Class = append(lane.Class, classIndex(v[2]))
		lane.Name = append(lane.Name, id)
		lane.Count = append(lane.Count, number(v[5]))
		lane.Busy = append(lane.Busy, number(v[6]))
	}
	return t, nil
}

// add takes a row of lanes.sql: its device, which is new or that of the row
// before, and its lane.
func (t *Timeline) add(v []any) (*Device, *Lane) {
	place := number(v[0])
	if int(place) > len(t.Devices) {
		t.Devices = append(t.Devices, &Device{
			Run: v[1], Rank: v[2], TraceID: v[3], Process: v[4], Ordinal: v[5], GPU: v[6],
			FirstNS: number(v[9]), LastNS: number(v[10]), OffsetNS: v[11], Events: number(v[12]), Streams: number(v[13]), CellNS: number(v[15]),
		})
		t.LeftOut = number(v[14]) - place
	}
	return t.Devices[len(t.Devices)-1], &Lane{Stream: v[7], Events: number(v[8])}
}

func number(v any) int64 {
	n, _ := v.(int64)
	return n
}

func classIndex(v any) int {
	for i, c := range Classes {
		if v == c {
			return i
		}
	}
	return 0
}
