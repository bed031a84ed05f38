package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const twinsDir = "twins"

// twin notes that a file has the content of a committed trace, so that the
// next run can skip it without reading it.
type twin struct {
	Source  Source `json:"source"`
	TraceID string `json:"trace_id"`
}

// NoteTwin remembers that a source has the same content as a trace of the
// lake. Losing the note costs time and nothing else.
func (l *Lake) NoteTwin(src Source, traceID string) error {
	if l.writer == "" {
		return errors.New("lake: opened for reading")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, ok := l.idx.commits[traceID]; ok && c.Source.Path == src.Path {
		return nil
	}
	if err := mkdirSynced(l.meta(twinsDir)); err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	t := twin{src, traceID}
	sum := sha256.Sum256([]byte(src.Path))
	if err := writeJSON(l.meta(twinsDir, hex.EncodeToString(sum[:8])+commitSuffix), t, replaceFile); err != nil {
		return err
	}
	l.idx.twins[src.Path] = t
	return nil
}

func (l *Lake) refreshTwins() error {
	entries, err := os.ReadDir(l.meta(twinsDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), commitSuffix) {
			continue
		}
		data, err := os.ReadFile(l.meta(twinsDir, e.Name()))
		if err != nil {
			continue
		}
		var t twin
		if json.Unmarshal(data, &t) == nil {
			l.idx.twins[t.Source.Path] = t
		}
	}
	return nil
}
