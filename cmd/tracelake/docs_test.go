package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestFlagsAreDocumented: docs/commands.md has a section for every command,
// which names all of its flags.
func TestFlagsAreDocumented(t *testing.T) {
	sections := commandSections(t)
	flags := 0
	root := newRoot()
	root.InitDefaultCompletionCmd()
	walk(root, func(c *cobra.Command) {
		name, _, _ := strings.Cut(strings.TrimPrefix(c.CommandPath(), "tracelake "), " ")
		text := sections[name]
		if text == "" {
			t.Errorf("docs/commands.md has no section for %s", c.CommandPath())
			return
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			flags++
			if !regexp.MustCompile(`--` + regexp.QuoteMeta(f.Name) + `\b[^-]`).MatchString(text) {
				t.Errorf("the section of %s does not name --%s", c.CommandPath(), f.Name)
			}
		})
	})
	if flags < 100 {
		t.Errorf("only %d flags were seen", flags)
	}
}

// walk visits the commands below c.
func walk(c *cobra.Command, visit func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if strings.HasPrefix(sub.Name(), "__") {
			continue // what the program calls itself by
		}
		visit(sub)
		walk(sub, visit)
	}
}

// commandSections returns what docs/commands.md says by command. A heading
// may name several commands, and a command may have several headings.
func commandSections(t *testing.T) map[string]string {
	sections := map[string]string{}
	text, err := os.ReadFile("../../docs/commands.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		heading, _, _ := strings.Cut(section, "\n")
		for _, part := range strings.Split(heading, ", ") {
			name, _, _ := strings.Cut(part, " ")
			sections[name] += section
		}
	}
	return sections
}
