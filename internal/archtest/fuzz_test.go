package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// fuzzed says for every function that reads what people or other programs
// wrote which fuzz target or property test tries it: one of its package, or of
// PACKAGE: where that stands before the name.
var fuzzed = map[string]map[string]string{
	"kineto": {
		"Read": "FuzzRead", "Digest": "TestDigestAlone", "RankInName": "FuzzRankInName", "AppendQuoted": "FuzzAppendQuoted",
		"ArgKeys": "", // the name of a table of ours
	},
	"kineto/compat":     {"Load": "TestAgainstPython", "Parse": "FuzzLoad"},
	"nsight":            {"Read": "FuzzExports", "Sniff": "FuzzJSONLines", "Identify": "FuzzJSONLines", "SniffHead": "FuzzJSONLines", "KindOfDir": "FuzzKindOfDir", "OpenTables": "nsight/reportcopy:FuzzCopy"},
	"nsight/btree":      {"Open": "nsight:FuzzSQLite"},
	"nsight/compat":     {"Load": "FuzzLoad"},
	"nsight/reportcopy": {"Copy": "FuzzCopy"},
	"collected":         {"Read": "FuzzRead", "ReadJob": "FuzzReadJob", "IsJob": "FuzzReadJob", "IsTable": "FuzzIsTable", "IsTraceName": "FuzzIsTable"},
	"redact":            {"Kineto": "FuzzKineto", "Open": "FuzzKineto"},
	"internal/inflate":  {"Open": "FuzzReader"},
	"internal/unpack":   {"FormOf": "FuzzOpen", "MarkOf": "FuzzOpen", "Head": "FuzzOpen", "Open": "FuzzOpen"},
	"internal/store": {
		"Parse": "FuzzURL", "Local": "FuzzURL", "IsURL": "FuzzURL", "Clean": "FuzzURL", "OpenURL": "FuzzURL",
		"NewError": "", "Register": "", "Download": "", // take what Parse gave
	},
	"analyze/execlog": {"Read": "FuzzRead"},
	"analyze/activity": {"Capture": "", // the names of what was read
		"ParseDeviceUUIDs": "FuzzDeviceUUIDs", "ReadDeviceUUIDsByPID": "FuzzDeviceUUIDsByPID", "ParseDetail": "FuzzDeviceUUIDs"},
	"analyze/diff": {"ParseGate": "FuzzParseGate"},
	"analyze/link": {"ParseIterationName": "FuzzNames", "ParseEngineStep": "FuzzNames"},
	"collect": {
		"ParseModel": "FuzzParseModel", "ReadModelList": "FuzzModelList", "ReadConfig": "FuzzConfig", "ReadStatus": "FuzzStatus",
		"FindPython": "", "NewPython": "", "Doctor": "", // paths of programs
	},
	"collect/server":     {"ReadRequests": "FuzzRequest", "IsWorkerTrace": "FuzzRequest", "NewControl": "FuzzRequest", "Exec": ""}, // a command of the user
	"collect/modelcache": {"Find": "FuzzSnapshot", "Local": "FuzzSnapshot", "Fingerprint": "FuzzSnapshot", "RepoDir": "FuzzSnapshot"},
	"schema": {
		"UserTable": "FuzzUserTable", "UserViewSQL": "FuzzUserTable", "IsUserTable": "FuzzUserTable", "ValidText": "FuzzUserTable", "DevicePeaksSQL": "FuzzDevicePeaks",
		"ViewsSQL": "", "ViewSQL": "", "TableByName": "", "CollectedByName": "", // names of ours, and the path of a dataset
	},
	"schema/lake": {
		"Open": "FuzzLake", "Create": "FuzzLake", "RunSlug": "FuzzRunSlug", "ValidRun": "FuzzRunSlug",
		"TraceID": "", "RejectedTraceID": "", "PartName": "", "PartPath": "", "SourceOf": "", // take what was checked
	},
}

// TestEverythingIsFuzzed checks that every exported function of these packages
// that takes text, bytes or a reader is listed, and that the targets exist.
func TestEverythingIsFuzzed(t *testing.T) {
	for dir, targets := range fuzzed {
		found := map[string]bool{}
		for name, f := range functions(t, dir, false) {
			if ast.IsExported(name) && takesInput(f) {
				found[name] = true
				if _, listed := targets[name]; !listed {
					t.Errorf("%s.%s has no fuzz target: write one, or say in this test why it needs none", dir, name)
				}
			}
		}
		for name, target := range targets {
			if !found[name] {
				t.Errorf("%s.%s is listed and not there", dir, name)
			}
			in := dir
			if d, other, ok := strings.Cut(target, ":"); ok {
				in, target = d, other
			}
			if _, there := functions(t, in, true)[target]; !there && target != "" {
				t.Errorf("%s.%s: %s has no %s", dir, name, in, target)
			}
		}
	}
}

// functions returns the functions that the files of a package declare, or its
// tests.
func functions(t *testing.T, dir string, tests bool) map[string]*ast.FuncDecl {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*ast.FuncDecl{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") != tests {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				out[fn.Name.Name] = fn
			}
		}
	}
	return out
}

// takesInput reports whether a function takes text, bytes or a reader.
func takesInput(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		typ := p.Type
		if a, ok := typ.(*ast.ArrayType); ok {
			typ = a.Elt
		}
		if s, ok := typ.(*ast.StarExpr); ok {
			typ = s.X
		}
		switch x := typ.(type) {
		case *ast.Ident:
			if x.Name == "string" || x.Name == "byte" {
				return true
			}
		case *ast.SelectorExpr:
			if strings.HasPrefix(x.Sel.Name, "Reader") {
				return true
			}
		}
	}
	return false
}
