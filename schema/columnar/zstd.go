package columnar

import "encoding/binary"

const (
	tinyBytes   = 64 // pages up to this size are not worth compressing
	sampleBytes = 4 << 10
	sampleFrom  = 8 * sampleBytes // smaller pages are compressed and not sampled
	zstdBlock   = 128 << 10       // bytes of text in a block of zstd, at most
)

// appendZstd appends a page as a frame of zstd. Where a sample says that
// compressing saves less than a twentieth, as of many packed differences of
// times, the frame holds the page as it is, as it does a tiny one: setting up for
// it takes longer than all else that is done with it. Every page has the codec of its
// file all the same: not every reader takes another for some row groups.
func (e *Encoder) appendZstd(dst, page []byte) []byte {
	if len(page) <= tinyBytes {
		return appendStored(dst, page)
	}
	if len(page) >= sampleFrom {
		at := (len(page) - sampleBytes) / 2
		n := len(dst)
		dst = e.zstd.EncodeAll(page[at:at+sampleBytes], dst)
		size := len(dst) - n
		dst = dst[:n]
		if size >= sampleBytes*19/20 {
			return appendStored(dst, page)
		}
	}
	return e.zstd.EncodeAll(page, dst)
}

// appendStored appends a frame of zstd whose blocks are raw (RFC 8878, 3.1.1).
func appendStored(dst, page []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, 0xFD2FB528) // magic number
	if len(page) < 256 {
		dst = append(dst, 1<<5, byte(len(page))) // a single segment, whose size is a byte
	} else {
		dst = append(dst, 2<<6|1<<5) // a size of four bytes
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(page)))
	}
	for last := false; !last; {
		n := min(len(page), zstdBlock)
		last = n == len(page)
		head := uint32(n) << 3
		if last {
			head |= 1
		}
		dst = append(dst, byte(head), byte(head>>8), byte(head>>16))
		dst = append(dst, page[:n]...)
		page = page[n:]
	}
	return dst
}
