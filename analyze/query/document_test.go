package query

import (
	"os"
	"testing"
)

func TestMarkdown(t *testing.T) {
	got, err := os.ReadFile("../../docs/analyses.md")
	if err != nil || string(got) != Markdown() {
		t.Errorf("docs/analyses.md is not what the headers say (%v): run go generate ./analyze/query", err)
	}
}
