package nsight

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tracelake/internal/regular"
	"tracelake/nsight/btree"
)

// Kind is a kind of input.
type Kind uint8

// Kinds of inputs, told by their content; a report by its name, since its
// format is not public.
const (
	None Kind = iota
	SQLite
	ParquetDir
	ArrowDir
	ArrowStreams // one file with a stream per table
	JSONLines
	Report // .nsys-rep or .qdrep, which only nsys reads
)

// Sniff tells what kind of export a file or directory is. What cannot be read is
// none.
func Sniff(path string) Kind {
	kind, err := Identify(path)
	if err != nil {
		return None
	}
	return kind
}

// Identify is Sniff for a file that is read next: that it cannot be read does not
// make it another kind of file.
func Identify(path string) (Kind, error) {
	st, err := os.Stat(path)
	if err != nil {
		return None, err
	}
	if st.IsDir() {
		return sniffDir(path)
	}
	f, err := regular.Open(path)
	if err != nil {
		return None, err
	}
	defer f.Close()
	head := make([]byte, HeadSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return None, err
	}
	return SniffHead(path, head[:n]), nil
}

// HeadSize is how many bytes from the start of a file tell what it is.
const HeadSize = 4096

// SniffHead tells what kind of export a file is by its name and first bytes.
func SniffHead(path string, head []byte) Kind {
	switch lower := strings.ToLower(path); {
	case bytes.HasPrefix(head, []byte(btree.Magic)):
		return SQLite
	case isArrowStream(head) && bytes.Contains(head, []byte("table_name")):
		return ArrowStreams
	case isJSONLine(head):
		return JSONLines
	case strings.HasSuffix(lower, ".nsys-rep"), strings.HasSuffix(lower, ".qdrep"):
		return Report
	}
	return None
}

// marks are tables one of which every export has.
var marks = []string{"StringIds", "TARGET_INFO_SESSION_START_TIME", "META_DATA_EXPORT", tableKernel, tableRuntime, tableNVTX}

var kindsOfDirs = map[string]Kind{".parquet": ParquetDir, ".arrow": ArrowDir, ".arrows": ArrowDir}

func sniffDir(dir string) (Kind, error) {
	for _, m := range marks {
		for _, ext := range slices.Sorted(maps.Keys(kindsOfDirs)) { // the same one each time where there are several
			st, err := os.Stat(filepath.Join(dir, m+ext))
			if err == nil && st.Mode().IsRegular() {
				return kindsOfDirs[ext], nil
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return None, err
			}
		}
	}
	return None, nil
}

// KindOfDir tells by the name of a file which kind of export its directory is.
func KindOfDir(file string) Kind {
	ext := filepath.Ext(file)
	if slices.Contains(marks, strings.TrimSuffix(filepath.Base(file), ext)) {
		return kindsOfDirs[ext]
	}
	return None
}

func isArrowStream(head []byte) bool {
	return len(head) >= 8 && bytes.HasPrefix(head, []byte{0xff, 0xff, 0xff, 0xff})
}

// isJSONLine reports whether a text starts like a line of a JSON lines export:
// an object with the name of a table.
func isJSONLine(head []byte) bool {
	if len(head) == 0 || head[0] != '{' || !bytes.Contains(head, []byte(`"table"`)) {
		return false
	}
	line, _, whole := bytes.Cut(head, []byte("\n"))
	if !whole {
		line = head
	}
	var row struct {
		Table string `json:"table"`
		Name  any    `json:"traceEvents"`
	}
	if json.Unmarshal(line, &row) == nil {
		return row.Table != "" && row.Name == nil
	}
	d := json.NewDecoder(bytes.NewReader(line)) // a line longer than what was read
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	key, err := d.Token()
	return err == nil && key == "table"
}

// open opens an export of any kind.
func open(ctx context.Context, path string, o Options) (tables, error) {
	switch kind := Sniff(path); kind {
	case SQLite:
		return openSQLite(path, o)
	case ParquetDir, ArrowDir:
		return openDir(path, kind)
	case ArrowStreams:
		return openStreams(path)
	case JSONLines:
		return openJSONLines(path)
	case Report:
		return openReport(ctx, path, o)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	return nil, reject("no export of Nsight Systems")
}
