package modelcache

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// bytesPer is the size of the element types whose size is whole; others are
// checked by their offsets alone.
var bytesPer = map[string]uint64{
	"F64": 8, "I64": 8, "U64": 8, "F32": 4, "I32": 4, "U32": 4, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
	"F8_E4M3": 1, "F8_E5M2": 1, "I8": 1, "U8": 1, "BOOL": 1,
}

type tensorHeader struct {
	DType   string   `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// checkSafetensors reads the header of a file of a given size and checks that
// it describes exactly that file, and that wanted tensors are in it.
func checkSafetensors(f *os.File, size int64, wanted []string) (code string, err error) {
	var word [8]byte
	if _, err := f.ReadAt(word[:], 0); err != nil {
		return Size, fmt.Errorf("has %d bytes, too few for a safetensors file", size)
	}
	n := binary.LittleEndian.Uint64(word[:])
	if n < 2 || n > maxHeader {
		return Header, fmt.Errorf("says that its header has %d bytes", n)
	}
	if n > uint64(size-8) {
		return Size, fmt.Errorf("has %d bytes, less than its header of %d", size, n)
	}
	end, names, err := readHeader(io.NewSectionReader(f, 8, int64(n)), wanted)
	if err != nil {
		return Header, err
	}
	if full := 8 + n + end; full != uint64(size) {
		return Size, fmt.Errorf("has %d bytes, its header describes %d", size, full)
	}
	if len(names) > 0 {
		return Index, fmt.Errorf("lacks %d tensors of the index, such as %s", len(names), anyOf(names))
	}
	return "", nil
}

func anyOf(names map[string]bool) string {
	least := ""
	for n := range names {
		if least == "" || n < least {
			least = n
		}
	}
	return fmt.Sprintf("%.100q", least)
}

// readHeader reads one tensor at a time, so that a large header costs its
// reading only. It returns where the data ends and which wanted tensors are
// not there.
func readHeader(r io.Reader, wanted []string) (end uint64, absent map[string]bool, err error) {
	absent = make(map[string]bool, len(wanted))
	for _, w := range wanted {
		absent[w] = true
	}
	d := json.NewDecoder(bufio.NewReaderSize(r, 64<<10))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0, nil, fmt.Errorf("header is no JSON object")
	}
	covered := uint64(0)
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return 0, nil, fmt.Errorf("header: %w", orEOF(err))
		}
		if name == "__metadata__" {
			var meta map[string]string
			if err := d.Decode(&meta); err != nil {
				return 0, nil, fmt.Errorf("header: metadata: %w", err)
			}
			continue
		}
		var h tensorHeader
		if err := d.Decode(&h); err != nil {
			return 0, nil, fmt.Errorf("header: tensor %.100q: %w", name, err)
		}
		if err := h.check(); err != nil {
			return 0, nil, fmt.Errorf("header: tensor %.100q: %w", name, err)
		}
		covered += h.Offsets[1] - h.Offsets[0]
		end = max(end, h.Offsets[1])
		delete(absent, name)
	}
	if _, err := d.Token(); err != nil {
		return 0, nil, fmt.Errorf("header: %w", orEOF(err))
	}
	// Data without gaps and overlaps is as long as its tensors together.
	if covered != end {
		return 0, nil, fmt.Errorf("header: tensors of %d bytes lie in %d bytes of data", covered, end)
	}
	return end, absent, nil
}

func (h *tensorHeader) check() error {
	if len(h.Offsets) != 2 || h.Offsets[0] > h.Offsets[1] || h.Offsets[1] > 1<<62 {
		return fmt.Errorf("data_offsets %v", h.Offsets)
	}
	size, known := bytesPer[h.DType]
	if !known {
		return nil
	}
	for _, n := range h.Shape {
		hi, lo := bits.Mul64(size, n)
		if hi != 0 {
			return fmt.Errorf("shape %v is too large", h.Shape)
		}
		size = lo
	}
	if got := h.Offsets[1] - h.Offsets[0]; got != size {
		return fmt.Errorf("%s of shape %v takes %d bytes, its offsets say %d", h.DType, h.Shape, size, got)
	}
	return nil
}

func orEOF(err error) error {
	if err == nil {
		return io.ErrUnexpectedEOF
	}
	return err
}
