package columnar

import (
	"encoding/binary"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"tracelake/schema"
)

// array returns a checked column as an Arrow array.
func (c *cells) array() arrow.Array {
	var data arrow.ArrayData
	switch c.decl.Type {
	case schema.String:
		data = c.stringData()
	case schema.Bool:
		bits := make([]byte, (c.rows+7)/8)
		c.each(func(r, k int) {
			bits[r>>3] |= byte(c.v.Vals[k]) << (r & 7)
		})
		data = c.data(nil, memory.NewBufferBytes(bits))
	case schema.Intervals:
		data = c.listData()
	default:
		words := make([]byte, 8*c.rows)
		c.each(func(r, k int) {
			binary.LittleEndian.PutUint64(words[8*r:], uint64(c.v.Vals[k]))
		})
		data = c.data(nil, memory.NewBufferBytes(words))
	}
	defer data.Release()
	return array.MakeFromData(data)
}

// each calls f with row and position of every value.
func (c *cells) each(f func(r, k int)) {
	if c.dense {
		for r := range c.rows {
			f(r, r)
		}
		return
	}
	for k, r := range c.v.Rows {
		f(int(r), k)
	}
}

// data puts the validity bitmap before the other buffers.
func (c *cells) data(child []arrow.ArrayData, buffers ...*memory.Buffer) arrow.ArrayData {
	var valid *memory.Buffer
	if !c.dense {
		bits := make([]byte, (c.rows+7)/8)
		for _, r := range c.v.Rows {
			bits[r>>3] |= 1 << (r & 7)
		}
		valid = memory.NewBufferBytes(bits)
	}
	all := append([]*memory.Buffer{valid}, buffers...)
	return array.NewData(arrowType(c.decl.Type), c.rows, all, child, c.rows-c.values(), 0)
}

func (c *cells) stringData() arrow.ArrayData {
	offsets := make([]byte, 0, 4*(c.rows+1))
	var text []byte
	done := 0 // rows whose start is in offsets
	c.each(func(r, k int) {
		for ; done <= r; done++ {
			offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(text)))
		}
		text = append(text, c.v.Dict[c.v.Vals[k]]...)
	})
	for ; done <= c.rows; done++ {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(len(text)))
	}
	return c.data(nil, memory.NewBufferBytes(offsets), memory.NewBufferBytes(text))
}

func (c *cells) listData() arrow.ArrayData {
	offsets := make([]byte, 0, 4*(c.rows+1))
	var fields [2][]byte
	n, done := 0, 0
	c.each(func(r, k int) {
		for ; done <= r; done++ {
			offsets = binary.LittleEndian.AppendUint32(offsets, uint32(n))
		}
		for _, x := range c.v.Lists[k] {
			fields[0] = binary.LittleEndian.AppendUint64(fields[0], uint64(x.OffsetNS))
			fields[1] = binary.LittleEndian.AppendUint64(fields[1], uint64(x.DurNS))
		}
		n += len(c.v.Lists[k])
	})
	for ; done <= c.rows; done++ {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(n))
	}
	var children []arrow.ArrayData
	for _, f := range fields {
		children = append(children, array.NewData(arrow.PrimitiveTypes.Int64, n,
			[]*memory.Buffer{nil, memory.NewBufferBytes(f)}, nil, 0, 0))
	}
	structs := array.NewData(intervalFields, n, []*memory.Buffer{nil}, children, 0, 0)
	return c.data([]arrow.ArrayData{structs}, memory.NewBufferBytes(offsets))
}
