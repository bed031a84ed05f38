// Command gen writes the documentation that comes from the declarations into
// the directory given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"tracelake/schema"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen DIRECTORY")
		os.Exit(2)
	}
	for name, text := range map[string]string{
		"data-dictionary.md": schema.DictionaryMarkdown(),
		"diagnostics.md":     schema.DiagnosticsMarkdown(),
	} {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), []byte(text), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}
