package nsight

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/apache/arrow-go/v18/arrow/memory"
)

// Kinds of Arrow messages.
const (
	schemaMessage     = 1
	dictionaryMessage = 2
	batchMessage      = 3
)

// message reads the kind of a message and the length of its body, and checks
// that nothing in it leads out of it.
func message(b []byte) (kind byte, body int64, ok bool) {
	f := newFlat(b)
	root, ok := f.root()
	if !ok {
		return 0, 0, false
	}
	if at, good := root.field(1, 1); good && at > 0 {
		kind = b[at]
	}
	at, ok := root.field(3, 8)
	if !ok {
		return 0, 0, false
	}
	if at > 0 {
		body = int64(binary.LittleEndian.Uint64(b[at:]))
	}
	check := map[byte]func(flatTable) bool{schemaMessage: soundSchema, dictionaryMessage: soundDictionary, batchMessage: soundBatch}[kind]
	if check == nil || !root.one(2, check) || !root.tables(4, soundPair) {
		return 0, 0, false
	}
	return kind, body, true
}

func soundSchema(t flatTable) bool {
	return t.tables(1, func(field flatTable) bool { return soundField(field, maxArrowDepth) }) && t.tables(2, soundPair) && t.vectors([2]int64{3, 8})
}

const (
	maxArrowDepth = 16 // of fields in fields; exports have none
	unionType     = 14
)

func soundField(t flatTable, depth int) bool {
	at, ok := t.field(2, 1)
	if !ok || at > 0 && t.f.b[at] == unionType || depth == 0 {
		return false // no export has unions
	}
	return t.vectors([2]int64{0, 1}) && t.one(3, anyTable) && t.one(4, func(d flatTable) bool { return d.one(1, anyTable) }) &&
		t.tables(5, func(child flatTable) bool { return soundField(child, depth-1) }) && t.tables(6, soundPair)
}

func anyTable(flatTable) bool { return true }

// soundPair checks a key with its value.
func soundPair(t flatTable) bool { return t.vectors([2]int64{0, 1}, [2]int64{1, 1}) }

func soundDictionary(t flatTable) bool { return t.one(1, soundBatch) }

func soundBatch(t flatTable) bool {
	return t.vectors([2]int64{1, 16}, [2]int64{2, 16}, [2]int64{4, 8}) && t.one(3, anyTable)
}

// soundFooter checks the footer of an Arrow file and returns how many batches
// it lists.
func soundFooter(b []byte) (batches int64, ok bool) {
	root, ok := newFlat(b).root()
	if !ok || !root.one(1, soundSchema) || !root.tables(4, soundPair) || !root.vectors([2]int64{2, 24}) {
		return 0, false
	}
	_, batches, ok = root.vector(3, 24)
	return batches, ok
}

// framed is where the messages of an Arrow file stand, which follow each other
// as in a stream.
type framed struct {
	from, to int64
	batches  int64
}

// fileFrame reads the end of an Arrow file. ok is false where it is cut or
// damaged.
func fileFrame(r io.ReaderAt, size int64) (f framed, ok bool) {
	const tail = 4 + int64(len(arrowMagic))
	var end [tail]byte
	if size < 8+tail {
		return f, false
	}
	if _, err := r.ReadAt(end[:], size-tail); err != nil || string(end[4:]) != arrowMagic {
		return f, false
	}
	n := int64(binary.LittleEndian.Uint32(end[:]))
	if n > size-tail-8 || n > maxLineBytes {
		return f, false
	}
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-tail-n); err != nil {
		return f, false
	}
	f.from, f.to = 8, size-tail-n // the magic is padded to eight bytes
	f.batches, ok = soundFooter(footer)
	return f, ok
}

// boundedMemory refuses to take more at once than a sound file of the given
// size can hold: the length of what is compressed is only what the file says.
type boundedMemory struct {
	memory.Allocator
	limit int
}

func bounded(fileSize int64) memory.Allocator {
	return boundedMemory{memory.NewGoAllocator(), int(min(maxArrowBuffer, 256<<20+min(fileSize, 1<<40)*256))}
}

func (m boundedMemory) Allocate(size int) []byte {
	m.check(size)
	return m.Allocator.Allocate(size)
}

func (m boundedMemory) Reallocate(size int, b []byte) []byte {
	m.check(size)
	return m.Allocator.Reallocate(size, b)
}

func (m boundedMemory) check(size int) {
	if size < 0 || size > m.limit {
		panic(fmt.Errorf("a buffer of %d bytes", size)) // which guarded takes for damage
	}
}
