package archtest

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// licences are the ones that the program may carry, and a sentence of each,
// in lower case and with single spaces.
var licences = map[string]string{
	"Apache-2.0": "apache license version 2.0",
	"MIT":        "permission is hereby granted, free of charge, to any person obtaining a copy",
	"BSD":        "redistribution and use in source and binary forms, with or without modification, are permitted",
	"ISC":        "permission to use, copy, modify, and distribute this software for any purpose",
	"MPL-2.0":    "mozilla public license version 2.0",
	"CC0-1.0":    "cc0 1.0 universal",
}

// licenceOf returns "" for a text of another licence.
func licenceOf(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	text = strings.NewReplacer("license, version", "license version", "and/or distribute", "and distribute", "> ", "").Replace(text)
	for name, sentence := range licences {
		if strings.Contains(text, sentence) {
			return name
		}
	}
	return ""
}

func TestLicenceOf(t *testing.T) {
	for text, want := range map[string]string{
		"Permission is hereby granted, free\n of charge, to any person obtaining a copy of": "MIT",
		"Apache License\n Version 2.0, January 2004":                                        "Apache-2.0",
		"GNU GENERAL PUBLIC LICENSE Version 3":                                              "",
		"":                                                                                  "",
	} {
		if got := licenceOf(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestLicences reads the licence of every module in the program.
func TestLicences(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-tags", "disable_grpc_modules", "-json=Module", "./cmd/tracelake")
	list.Dir = "../.."
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dirs := map[string]string{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			Module *struct{ Path, Dir string }
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if p.Module != nil {
			dirs[p.Module.Path] = p.Module.Dir
		}
	}
	if len(dirs) < 10 {
		t.Fatalf("only %d modules", len(dirs))
	}
	for module, dir := range dirs {
		if got, files := licenceIn(t, dir); got == "" {
			t.Errorf("%s: no licence that is allowed in %v", module, files)
		}
	}
}

func licenceIn(t *testing.T, dir string) (licence string, files []string) {
	t.Helper()
	for _, pattern := range []string{"LICENSE*", "LICENCE*", "License*", "license*", "COPYING*"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	for _, f := range files {
		if text, err := os.ReadFile(f); err == nil && licence == "" {
			licence = licenceOf(string(text))
		}
	}
	return licence, files
}
