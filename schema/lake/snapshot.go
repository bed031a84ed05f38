package lake

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// The snapshot holds the commits of a large lake in an object store in one object,
// so that a process reads that and what changed since, and not every commit, each
// of which takes a request. (Files are read as fast as it.) It may be old, missing
// or cut off: of what it says only that counts whose commit has the same version.
const (
	snapshotPath = MetaDir + "/commits.jsonl.zst"
	// fromSnapshot is how many commits are worth a snapshot, and how many others a
	// new one.
	fromSnapshot = 64
	maxSnapshot  = 1 << 30 // bytes, as stored and as text
	maxLine      = 16 << 20
)

// snapshotLine is a commit in the snapshot.
type snapshotLine struct {
	ID      string          `json:"id"`
	Size    int64           `json:"size"`
	MTimeNS int64           `json:"mtime_ns"`
	Version string          `json:"version,omitempty"`
	Commit  json.RawMessage `json:"commit"`
}

func (s *snapshotLine) is(f fileStamp) bool {
	return s.Size == f.size && s.MTimeNS == f.mtime.UnixNano() && s.Version == f.version
}

// recall adds to the index what the snapshot says of the listed commits, and
// returns those that it does not know. The caller holds the lock.
func (l *Lake) recall(listed []entry) (rest []entry) {
	if !l.Remote() || len(listed) < fromSnapshot {
		return listed
	}
	want := map[string]fileStamp{}
	for _, e := range listed {
		want[e.name] = e.stamp
	}
	got := map[string]Commit{}
	_ = l.readSnapshot(want, func(c Commit) { got[c.TraceID] = c }) // as far as it goes
	for _, e := range listed {
		c, ok := got[e.name]
		if !ok {
			rest = append(rest, e)
			continue
		}
		l.idx.add(c)
		l.idx.stamp[e.name] = e.stamp
	}
	l.idx.unsaved = len(rest)
	return rest
}

// readSnapshot calls add, one at a time, for the commits whose stamps are wanted.
func (l *Lake) readSnapshot(want map[string]fileStamp, add func(Commit)) error {
	data, err := l.remote().readLarge(snapshotPath, maxSnapshot)
	if err != nil {
		return err
	}
	z, err := zstd.NewReader(bytes.NewReader(data), zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxSnapshot))
	if err != nil {
		return err
	}
	defer z.Close()
	lines := bufio.NewScanner(io.LimitReader(z, maxSnapshot))
	lines.Buffer(nil, maxLine)
	next := make(chan []byte, 64)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for text := range next {
				var s snapshotLine
				if json.Unmarshal(text, &s) != nil {
					continue
				}
				if stamp, ok := want[s.ID]; !ok || !s.is(stamp) {
					continue
				}
				if c, err := l.parseCommit(s.ID, s.Commit); err == nil {
					mu.Lock()
					add(c)
					mu.Unlock()
				}
			}
		})
	}
	for lines.Scan() {
		next <- bytes.Clone(lines.Bytes())
	}
	close(next)
	wg.Wait()
	return lines.Err()
}

// SaveIndex writes the snapshot, where the lake is large and much changed since
// the last one. Several processes may: the last one counts.
func (l *Lake) SaveIndex() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.idx.commits); !l.Remote() || l.writer == "" || n < fromSnapshot || l.idx.unsaved < max(fromSnapshot, n/10) {
		return nil
	}
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	enc := json.NewEncoder(z)
	for id, c := range l.idx.commits {
		stamp := l.idx.stamp[id]
		if stamp.version == "" {
			continue // just written, or without versions, which alone tell one content from another
		}
		text, err := json.Marshal(c)
		if err == nil {
			err = enc.Encode(snapshotLine{ID: id, Size: stamp.size, MTimeNS: stamp.mtime.UnixNano(), Version: stamp.version, Commit: text})
		}
		if err != nil {
			return errors.Join(fmt.Errorf("lake: %w", err), z.Close())
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	l.idx.unsaved = 0
	if out.Len() > maxSnapshot {
		return nil
	}
	if err := l.at.write(snapshotPath, out.Bytes(), replaceFile); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	return nil
}
