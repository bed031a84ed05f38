package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
)

type event struct {
	Ph, Cat, Name string
	ID            int64
	TS, Dur       json.Number
	Args          map[string]any
}

type trace struct {
	BaseTimeNanoseconds int64
	DistributedInfo     struct {
		Rank      int
		WorldSize int `json:"world_size"`
	}
	TraceEvents []event
}

func small(layout string) config {
	return config{Steps: 12, Seed: 1, Layout: layout, Stacks: true, Rank: 1, World: 2, StepOps: 60, LostPerMille: 5}
}

func text(t *testing.T, c config) []byte {
	t.Helper()
	var out bytes.Buffer
	n, err := generate(&out, c)
	if err != nil {
		t.Fatal(err)
	}
	if n.Bytes != int64(out.Len()) {
		t.Errorf("says %d bytes, wrote %d", n.Bytes, out.Len())
	}
	return out.Bytes()
}

func parse(t *testing.T, data []byte) (tr trace) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&tr); err != nil {
		t.Fatal(err)
	}
	return tr
}

// TestSameBytes keeps the generator from changing by accident: every recorded
// measurement and the demo depend on it.
func TestSameBytes(t *testing.T) {
	for layout, want := range map[string]string{
		"2025": "9ec1018fbef8ca32",
		"2026": "1ed993e0d5997c97",
	} {
		sum := sha256.Sum256(text(t, small(layout)))
		if got := hex.EncodeToString(sum[:8]); got != want {
			t.Errorf("layout %s: digest %s, want %s", layout, got, want)
		}
	}
}

func TestLayoutsAgree(t *testing.T) {
	old, recent := parse(t, text(t, small("2025"))), parse(t, text(t, small("2026")))
	a, _ := json.Marshal(old)
	b, _ := json.Marshal(recent)
	if !bytes.Equal(a, b) {
		t.Error("the layouts hold different events")
	}
	if old.DistributedInfo.Rank != 1 || old.DistributedInfo.WorldSize != 2 || old.BaseTimeNanoseconds != baseNS {
		t.Errorf("header and footer: %+v, %d", old.DistributedInfo, old.BaseTimeNanoseconds)
	}
}

func TestShape(t *testing.T) {
	tr := parse(t, text(t, small("2026")))
	calls, gpu, linked, graphs := map[string]bool{}, 0, 0, map[string]int{}
	kinds := map[string]int{}
	for _, e := range tr.TraceEvents {
		kinds[e.Cat]++
		if e.Cat == "cuda_runtime" || e.Cat == "cuda_driver" {
			calls[e.Args["correlation"].(json.Number).String()] = true
		}
	}
	for _, e := range tr.TraceEvents {
		switch e.Cat {
		case "kernel", "gpu_memcpy", "gpu_memset":
			gpu++
			id := e.Args["correlation"].(json.Number).String()
			if calls[id] {
				linked++
			}
			if e.Args["graph id"].(json.Number) != "0" {
				graphs[id]++
			}
		}
	}
	if lost := gpu - linked; lost < 1 || lost > gpu/20 {
		t.Errorf("%d of %d GPU events have no call", lost, gpu)
	}
	several := 0
	for _, n := range graphs {
		several = max(several, n)
	}
	if several < 15 {
		t.Errorf("at most %d kernels per graph launch", several)
	}
	share := func(cats ...string) int {
		n := 0
		for _, c := range cats {
			n += kinds[c]
		}
		return 100 * n / len(tr.TraceEvents)
	}
	for _, x := range []struct{ got, want int }{
		{share("cpu_op", "python_function"), 43},
		{share("cuda_runtime", "cuda_driver"), 15},
		{share("kernel"), 12},
		{share("ac2g"), 21},
	} {
		if x.got < x.want-4 || x.got > x.want+4 {
			t.Errorf("share %d %%, want about %d %%", x.got, x.want)
		}
	}
}

func TestNoStacks(t *testing.T) {
	c := small("2026")
	c.Stacks = false
	for _, e := range parse(t, text(t, c)).TraceEvents {
		if e.Cat == "python_function" {
			t.Fatal("a python_function without stacks")
		}
	}
}

// TestMixes checks what sets the mixes apart, and that white space is all that
// -minify removes.
func TestMixes(t *testing.T) {
	perGraph := map[string]int{}
	for _, mix := range mixes {
		for _, amd := range []bool{false, true} {
			c := small("2026")
			c.Mix, c.AMD = mix, amd
			full := text(t, c)
			c.Minify = true
			var short bytes.Buffer
			if err := json.Compact(&short, full); err != nil {
				t.Fatal(err)
			}
			if got := text(t, c); !bytes.Equal(got, short.Bytes()) {
				t.Errorf("%s, AMD %v: minified text differs from json.Compact", mix, amd)
			}
			calls, linked, gpu, hip := map[string]bool{}, 0, 0, 0
			for _, e := range parse(t, full).TraceEvents {
				if e.Cat == "cuda_runtime" || e.Cat == "cuda_driver" {
					calls[e.Args["correlation"].(json.Number).String()] = true
					if strings.HasPrefix(e.Name, "hip") {
						hip++
					} else if amd {
						t.Fatalf("%s on an AMD machine", e.Name)
					}
				}
			}
			for _, e := range parse(t, full).TraceEvents {
				if e.Cat == "kernel" {
					gpu++
					if calls[e.Args["correlation"].(json.Number).String()] {
						linked++
					}
				}
			}
			if gpu < 100 || linked < gpu*9/10 || (hip > 0) != amd {
				t.Errorf("%s, AMD %v: %d of %d kernels linked, %d calls of hip", mix, amd, linked, gpu, hip)
			}
			perGraph[mix] = gpu * 100 / len(calls)
		}
	}
	if perGraph[decode] < 5*perGraph[serving] || perGraph[training] > perGraph[serving] {
		t.Errorf("kernels per hundred calls: %v", perGraph)
	}
}

func TestSize(t *testing.T) {
	c := small("2025")
	c.Steps, c.MB = 0, 2
	if n := len(text(t, c)); n < 2_000_000 || n > 2_400_000 {
		t.Errorf("%d bytes", n)
	}
	for _, bad := range []config{{Steps: 1}, {Layout: "2026"}, {Layout: "2026", Steps: 1, Mix: "x"}} {
		if _, err := generate(&bytes.Buffer{}, bad); err == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
