package kineto

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// hostile are texts whose parts look like what repair looks for, over and over.
func hostile(n int) map[string]string {
	var keys strings.Builder
	for k := range n {
		fmt.Fprintf(&keys, `,"k%d":%d`, k, k)
	}
	wrap := func(s string) string { return `{"traceEvents":[` + s + `]}` }
	times := func(s string) string { return strings.Repeat(s, n) }
	return map[string]string{
		"unknown keys":            wrap(`{"ph":"X","name":"a","ts":1,"dur":1,"args":{"x":1` + keys.String() + `}}`),
		"args over and over":      wrap(`{"ph":"X","name":"a","ts":1,"dur":1` + keys.String() + times(`,"args":{"x":1}`) + `}`),
		"null over and over":      wrap(`{"ph":"X","name":"a","ts":1,"dur":1` + keys.String() + times(`,"ts":"x","ts":null`) + `}`),
		"events without an end":   wrap(times(`{"ph":"X" bad,`) + `}`),
		"starts behind commas":    wrap(`{"ph":"X" bad` + times(`,{"ts":`) + `}`),
		"starts within a string":  wrap(`{"ph":"X","name":"a` + times(`"",{"ts":`) + `"}`),
		"braces before objects":   wrap(`{"ph":"X" bad` + times(`},{"a":{"b":{`)),
		"lists without an end":    wrap(`{"ph":"X" bad,"name":"q` + times(`","a":[q`) + `}`),
		"quotes":                  wrap(`{"ph":"X","name":"` + times(`",`) + `"}`),
		"quotes and keys":         wrap(`{"ph":"X","name":"` + times(`","a":"`) + `}`),
		"small events, broken":    wrap(times(`{"ph":"X","name":"a"b","c"d","e":"f"g","h"i"j":"k"},`)),
		"lists with broken texts": wrap(`{"ph":"X","name":"a","args":{` + times(`"a":["b"c"],`) + `}}`),
	}
}

// TestHostileTexts reads texts on which a search that starts over at every event, key
// or quote would take minutes, and reads them alike wherever chunks end.
func TestHostileTexts(t *testing.T) {
	for name, text := range hostile(150_000) {
		t.Run(name, func(t *testing.T) {
			whole := readAll(t, from([]byte(text)), Options{Workers: 1})
			if whole.err == "" && len(whole.rows)+len(whole.diags) == 0 {
				t.Error("neither rows nor a word about them")
			}
			for _, size := range []int{512 << 10} {
				if got := readAll(t, from([]byte(text)), Options{Workers: 1, ChunkSize: size}); got.err != whole.err || whole.err == "" && !reflect.DeepEqual(got, whole) {
					t.Errorf("chunks of %d bytes: %.300v, want %.300v", size, got, whole)
				}
			}
		})
	}
}
