package kineto

import (
	"encoding/json"
	"strconv"
	"strings"
)

// finishCounter files a counter event, one row per series. What stands beside the
// series goes to the first row.
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
	beside := d.other[:0]
	for _, a := range d.other {
		if a.top {
			beside = append(beside, a)
		} else {
			all = append(all, series{a.key, d.out.strs.at(a.val)})
		}
	}
	d.keepOther(beside)
	if d.set.has(slotTS) {
		d.out.times.see(d.val[slotTS], 0, false)
	} else {
		d.noTime()
	}
	if d.set.has(slotDur) {
		d.keepTime(slotDur)
	}
	d.idText()
	for k := 0; k < max(1, len(all)); k++ {
		row := d.addRow(t)
		if d.set.has(slotTS) {
			t.cols[colOf[tab].start].put(row, d.val[slotTS])
		}
		d.putSlots(spec, t, row)
		if k == 0 {
			d.keepOther(d.other[:0])
			for _, s := range []slot{slotScope, slotBP} {
				d.set.del(s)
			}
		}
		if k < len(all) {
			v := all[k]
			text := string(v.json)
			id := d.intern([]byte(v.name))
			t.cols[colOf[tab].series].put(row, int64(id))
			if text == "null" {
				continue
			}
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
				id := d.intern([]byte(strings.ToValidUTF8(s, "\uFFFD")))
				t.cols[colOf[tab].valueText].put(row, int64(id))
			}
		}
	}
}
