package kineto

import (
	"os"
	"testing"
	"time"
	"bytes"
	"fmt"
)

func TestScratch(t *testing.T) {
	f := os.Getenv("TRACE")
	if f == "" { t.Skip("x") }
	b, _ := os.ReadFile(f)
	i := bytes.Index(b, []byte(`"traceEvents"`))
	i += bytes.IndexByte(b[i:], '[') + 1
	n := len(b)
	b = append(b, make([]byte, pad)...)
	d := newDecoder()
	for k := 0; k < 4; k++ {
		out := newBatch()
		t0 := time.Now()
		d.begin(b, n, true, out)
		next, st := d.run(i, n+1)
		d.flushKinds()
		el := time.Since(t0)
		fmt.Println(next, n, st, out.members, el, float64(n)/1e6/el.Seconds(), "MB/s", out.strs.len(), out.count, len(d.dyn))
		for i := range out.tables { fmt.Print(specs[i].table.Name, " ", out.tables[i].n, "; ") }
		fmt.Println()
	}
}
