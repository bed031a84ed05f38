package kineto

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tracelake/schema"
)

func TestScratch(t *testing.T) {
	pat := os.Getenv("TRACE")
	if pat == "" {
		t.Skip("x")
	}
	fs, _ := filepath.Glob(pat)
	for _, f := range fs {
		t0 := time.Now()
		o := Options{}
	again:
		r, _ := os.Open(f)
		rows := 0
		o.RowGroups = func(t *schema.Table, n int, cols []schema.Vector, done func()) error { rows += n; done(); return nil }
		res, err := Read(context.Background(), r, o)
		r.Close()
		var re *RestartError
		if errors.As(err, &re) {
			o.BaseNS, o.SkipTo = re.BaseNS, re.SkipTo
			goto again
		}
		if err != nil {
			fmt.Println(filepath.Base(f), "ERR", err)
			continue
		}
		oc, why := res.Diags.Outcome()
		el := time.Since(t0)
		fmt.Println(filepath.Base(f), oc, why, res.Events, res.Rows, el.Milliseconds(), "ms", float64(res.TextBytes)/1e6/el.Seconds(), "MB/s")
		for _, d := range res.Diags.List() {
			fmt.Println("    ", d)
		}
	}
}
