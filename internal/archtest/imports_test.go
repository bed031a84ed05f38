// Package archtest holds tests of the shape of the repository.
package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

// allowed lists, per package prefix, which packages of tracelake it may
// import. Data flows one way: readers fill the model, analyses read it, convert
// joins both, and commands are on top. The longest prefix counts.
var allowed = map[string][]string{
	"tracelake/schema":                 {"tracelake/schema"},
	"tracelake/schema/columnar":        {"tracelake/schema", "tracelake/internal/aside", "tracelake/internal/freelist", "tracelake/internal/regular"},
	"tracelake/schema/lake":            {"tracelake/schema", "tracelake/internal"},
	"tracelake/kineto":                 {"tracelake/schema", "tracelake/internal"},
	"tracelake/nsight":                 {"tracelake/nsight", "tracelake/schema", "tracelake/internal"},
	"tracelake/nsight/reportcopy":      {"tracelake/nsight", "tracelake/redact", "tracelake/schema", "tracelake/internal/regular", "tracelake/internal/scratch"},
	"tracelake/analyze/internal":       {},
	"tracelake/analyze/interval":       {"tracelake/schema"},
	"tracelake/analyze/link":           {"tracelake/schema", "tracelake/analyze/internal"},
	"tracelake/analyze/execlog":        {"tracelake/schema", "tracelake/analyze/link", "tracelake/internal/regular"},
	"tracelake/analyze/activity":       {"tracelake/schema", "tracelake/internal/regular", "tracelake/analyze/execlog", "tracelake/analyze/internal", "tracelake/analyze/interval", "tracelake/analyze/link"},
	"tracelake/analyze/query":          {"tracelake/schema", "tracelake/internal/scratch"},
	"tracelake/analyze/query/internal": {"tracelake/analyze/query"},
	"tracelake/analyze/diff":           {"tracelake/analyze/query"},
	"tracelake/analyze/slice":          {"tracelake/analyze/query", "tracelake/kineto"},
	"tracelake/redact":                 {"tracelake/kineto", "tracelake/internal"},
	"tracelake/collected":              {"tracelake/schema", "tracelake/internal/regular"},
	"tracelake/collect":                {"tracelake/collect", "tracelake/internal/filelock", "tracelake/internal/regular"},
	"tracelake/collect/server":         {"tracelake/internal/regular"},
	"tracelake/collect/iterations":     {},
	"tracelake/collect/isolate":        {},
	"tracelake/collect/modelcache":     {"tracelake/internal/regular"},
	"tracelake/collect/worker":         {},
	"tracelake/convert":                {"tracelake/internal", "tracelake/schema", "tracelake/kineto", "tracelake/nsight", "tracelake/collected", "tracelake/analyze"},
	"tracelake/bench":                  {"tracelake"},
	"tracelake/report":                 {"tracelake/analyze/query", "tracelake/schema"},
	"tracelake/cmd":                    {"tracelake"},
	"tracelake/internal":               {},
	"tracelake/internal/inflate":       {"tracelake/internal/freelist"},
	"tracelake/internal/unpack":        {"tracelake/internal/inflate"},

	"tracelake/internal/scratch":         {"tracelake/internal/filelock"},
	"tracelake/internal/store":           {"tracelake/internal/filelock", "tracelake/internal/scratch"},
	"tracelake/internal/store/cloud":     {"tracelake/internal/store"},
	"tracelake/internal/store/storetest": {"tracelake/internal/filelock", "tracelake/internal/store"},
}

func under(pkg, prefix string) bool { return pkg == prefix || strings.HasPrefix(pkg, prefix+"/") }

func TestImports(t *testing.T) {
	list := exec.Command("go", "list", "-json=ImportPath,Imports", "tracelake/...")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	d := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		seen++
		rule := ""
		for prefix := range allowed {
			if under(p.ImportPath, prefix) && len(prefix) > len(rule) {
				rule = prefix
			}
		}
		if rule == "" {
			t.Errorf("%s has no rule: say in this test what it may import", p.ImportPath)
			continue
		}
		for _, imp := range p.Imports {
			if !under(imp, "tracelake") || under(imp, p.ImportPath) {
				continue
			}
			ok := false
			for _, a := range allowed[rule] {
				ok = ok || under(imp, a)
			}
			if !ok {
				t.Errorf("%s imports %s; allowed are %v", p.ImportPath, imp, allowed[rule])
			}
		}
	}
	if seen < 10 {
		t.Fatalf("only %d packages", seen)
	}
}
