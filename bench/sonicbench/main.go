// Command sonicbench reads a Kineto trace with sonic into typed structs and
// writes nothing: the floor for a program that uses the fastest general JSON
// decoder for Go.
//
//	go run ./bench/sonicbench FILE
package main

import (
	"fmt"
	"os"

	"github.com/bytedance/sonic"
)

// event has a field for what most events carry.
type event struct {
	Ph   string  `json:"ph"`
	Cat  string  `json:"cat"`
	Name string  `json:"name"`
	PID  any     `json:"pid"`
	TID  any     `json:"tid"`
	TS   float64 `json:"ts"`
	Dur  float64 `json:"dur"`
	ID   int64   `json:"id"`
	BP   string  `json:"bp"`
	S    string  `json:"s"`
	Args args    `json:"args"`
}

type args struct {
	ExternalID     int64     `json:"External id"`
	Correlation    int64     `json:"correlation"`
	CBID           int64     `json:"cbid"`
	Device         int64     `json:"device"`
	Context        int64     `json:"context"`
	Stream         any       `json:"stream"` // AMD writes text
	Queued         int64     `json:"queued"`
	Registers      int64     `json:"registers per thread"`
	SharedMemory   int64     `json:"shared memory"`
	BlocksPerSM    float64   `json:"blocks per SM"`
	WarpsPerSM     float64   `json:"warps per SM"`
	Grid           []int64   `json:"grid"`
	Block          []int64   `json:"block"`
	Occupancy      float64   `json:"est. achieved occupancy %"`
	GraphNode      int64     `json:"graph node id"`
	Graph          int64     `json:"graph id"`
	Bytes          int64     `json:"bytes"`
	Bandwidth      float64   `json:"memory bandwidth (GB/s)"`
	RecordFunction int64     `json:"Record function id"`
	ConcreteInputs []string  `json:"Concrete Inputs"`
	InputType      []string  `json:"Input type"`
	InputStrides   [][]int64 `json:"Input Strides"`
	InputDims      [][]int64 `json:"Input Dims"`
	EvIdx          int64     `json:"Ev Idx"`
	PythonParent   int64     `json:"Python parent id"`
	Python         int64     `json:"Python id"`
	TotalReserved  int64     `json:"Total Reserved"`
	TotalAllocated int64     `json:"Total Allocated"`
	MemoryBytes    int64     `json:"Bytes"`
	DeviceID       int64     `json:"Device Id"`
	DeviceType     int64     `json:"Device Type"`
	Addr           int64     `json:"Addr"`
}

type trace struct {
	BaseTimeNanoseconds int64   `json:"baseTimeNanoseconds"`
	TraceEvents         []event `json:"traceEvents"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sonicbench FILE")
		os.Exit(2)
	}
	data, err := os.ReadFile(os.Args[1])
	if err == nil {
		var t trace
		// Strings point into data, as the fastest configuration allows.
		if err = sonic.ConfigFastest.Unmarshal(data, &t); err == nil {
			fmt.Println(len(t.TraceEvents), "events")
			return
		}
	}
	fmt.Fprintln(os.Stderr, "sonicbench:", err)
	os.Exit(1)
}
