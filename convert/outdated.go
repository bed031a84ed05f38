package convert

import (
	"fmt"
	"path/filepath"
	"strings"

	"tracelake/schema"
	"tracelake/schema/lake"
)

// held are the traces of files, by path: those that the dataset had when the
// import began, and those that the files hold now.
type held struct {
	before map[string][]string
	now    map[string]map[string]bool
}

// held asks what the dataset has of some inputs.
func (c *importer) held(inputs []Input) (h held, err error) {
	paths := map[string]bool{}
	for _, in := range inputs {
		paths[in.sourcePath()] = true
	}
	delete(paths, "")
	h.now = map[string]map[string]bool{}
	h.before, err = c.lake.Holding(paths)
	return h, err
}

// sourcePath names an input as its commit does; "" where two inputs may have one
// name.
func (in *Input) sourcePath() string {
	if in.Path == Stdin {
		return ""
	}
	if in.remote != nil {
		return in.remote.source(in.Path).Path
	}
	abs, err := filepath.Abs(in.Path)
	path := schema.ValidText(abs)
	if err != nil || strings.Contains(path, `\x`) { // which stands for a byte, or for itself
		return ""
	}
	return path
}

func (h *held) add(in Input, r *Report) {
	path := in.sourcePath()
	if path == "" || r.Failed != "" || r.TraceID == "" {
		return
	}
	if h.now[path] == nil {
		h.now[path] = map[string]bool{}
	}
	h.now[path][r.TraceID] = true
}

// outdate takes out of the dataset what files held before.
func (c *importer) outdate(h held, sum *Summary) error {
	gone, needed, err := c.lake.Outdate(h.before, h.now, func(of, twin *lake.Commit) bool {
		return twin.ContentDigest == twinSum(of.ContentDigest, twin.Source.Path)
	})
	sum.Replaced = len(gone)
	for _, x := range needed {
		sum.Notices = append(sum.Notices, fmt.Sprintf("trace %s stays: %s holds another trace now, but other inputs had the same content as this one", x.TraceID, x.Source.Path))
	}
	return err
}
