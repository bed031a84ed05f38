package kineto

import (
	"encoding/json"
	"strconv"
	"strings"
)

// finishCounter files a counter event, one row per series.
func (d *decoder) finishCounter() {
	const tab = tabCounters
	spec, t := &specs[tab], &d.out.tables[tab]
	type series struct {
		name string
		json []byte
	}
	var all []series
	for s := slotFirstArg; s < len(slots); s++ {
		if d.set.has(s) {
			all = append(all, series{slots[s].name, d.appendSlot(nil, s)})
			d.set.del(s)
		}
	}
	for _, a := range d.other {
		name := a.key
		if a.top {
			name = "event." + name
		}
		all = append(all, series{name, d.out.strs.at(a.val)})
	}
	d.keepOther(d.other[:0])
	if d.set.has(slotTS) {
		d.out.times.see(d.val[slotTS], 0, false)
	}
	for k := 0; k < max(1, len(all)); k++ {
		row := d.addRow(t)
		if d.set.has(slotTS) {
			t.cols[colOf[tab].start].put(row, d.val[slotTS])
		}
		for _, s := range []slot{slotCat, slotName, slotPID, slotPIDText, slotTID, slotTIDText} {
			if d.set.has(s) {
				t.cols[spec.slotCol[s]].put(row, d.val[s])
			}
		}
		if k < len(all) {
			v := all[k]
			text := string(v.json)
			id, _ := d.out.strs.put([]byte(v.name))
			t.cols[colOf[tab].series].put(row, int64(id))
			if i, ok := wholeNumber(text); ok {
				t.cols[colOf[tab].valueInt].put(row, i)
			}
			if f, err := strconv.ParseFloat(text, 64); err == nil && json.Valid([]byte(text)) {
				t.cols[colOf[tab].value].put(row, floatBits(f))
			} else {
				var s string
				if json.Unmarshal([]byte(text), &s) != nil {
					s = text
				}
				id, _ := d.out.strs.put([]byte(strings.ToValidUTF8(s, "\uFFFD")))
				t.cols[colOf[tab].valueText].put(row, int64(id))
			}
		}
	}
}
