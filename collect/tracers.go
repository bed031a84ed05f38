package collect

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Tracer is what the worker says of a tracer.
type Tracer struct {
	Name           string   `json:"name"`
	Description    string   `json:"description"`
	Version        string   `json:"version"`
	Frameworks     []string `json:"frameworks"`
	Modes          []string `json:"modes"`
	ExclusiveGroup string   `json:"exclusive_group"`
	Tables         []string `json:"tables"`
	Files          []string `json:"files"`
	Requires       []string `json:"requires"`
	NeedsWeights   *bool    `json:"needs_weights"`
	Source         string   `json:"source"`
}

func (t *Tracer) weights() bool { return t.NeedsWeights == nil || *t.NeedsWeights }

func (t *Tracer) supports(framework, mode string) string {
	switch {
	case !slices.Contains(t.Frameworks, framework):
		return fmt.Sprintf("tracer %s is for %s", t.Name, strings.Join(t.Frameworks, ", "))
	case len(t.Modes) > 0 && !slices.Contains(t.Modes, mode):
		return fmt.Sprintf("tracer %s has no %s mode, only %s", t.Name, mode, strings.Join(t.Modes, ", "))
	}
	return ""
}

// Tracers asks for all tracers; none of their libraries is needed. Files and
// packages that could not be read come back as notices.
func (p *Python) Tracers(ctx context.Context, paths []string) (list []Tracer, notices []string, err error) {
	var out struct {
		Tracers []Tracer `json:"tracers"`
		Errors  []struct {
			Source  string `json:"source"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if err := p.ask(ctx, nil, &out, append([]string{"list"}, pathArgs(paths)...)...); err != nil {
		return nil, nil, fmt.Errorf("%s cannot list the tracers: %w", p.Path, err)
	}
	for _, t := range out.Tracers {
		if t.Name == "" || !filepath.IsLocal(t.Name) || strings.ContainsAny(t.Name, `/\`) || strings.HasPrefix(t.Name, ".") {
			notices = append(notices, fmt.Sprintf("a tracer of %s has the name %.80q, which cannot name a directory", t.Source, t.Name))
			continue
		}
		list = append(list, t)
	}
	for _, e := range out.Errors {
		notices = append(notices, fmt.Sprintf("%s: %s", e.Source, clipText(e.Message, 500)))
	}
	return list, notices, nil
}

// Describe returns one tracer with the columns of its tables, as the worker
// gives them.
func (p *Python) Describe(ctx context.Context, name string, paths []string) (t *Tracer, columns json.RawMessage, err error) {
	var out struct {
		Tracer  Tracer          `json:"tracer"`
		Columns json.RawMessage `json:"columns"`
	}
	if err := p.ask(ctx, nil, &out, append([]string{"describe", name}, pathArgs(paths)...)...); err != nil {
		return nil, nil, err
	}
	return &out.Tracer, out.Columns, nil
}

func pathArgs(paths []string) []string {
	var out []string
	for _, p := range absolutePaths(paths) {
		out = append(out, "--tracer-path", p)
	}
	return out
}

// absolutePaths makes files and directories absolute, as workers run
// elsewhere; names of packages stay as they are.
func absolutePaths(paths []string) []string {
	out := make([]string, 0, len(paths))
	for _, p := range paths {
		if strings.ContainsRune(p, filepath.Separator) || strings.HasSuffix(p, ".py") || exists(p) {
			if abs, err := filepath.Abs(p); err == nil {
				p = abs
			}
		}
		out = append(out, p)
	}
	return out
}

// choose returns the tracers to run. Named ones have to fit; of all, those that
// fit are taken.
func choose(list []Tracer, names []string, framework, mode string) ([]Tracer, error) {
	var out []Tracer
	if len(names) == 0 || len(names) == 1 && names[0] == "all" {
		for _, t := range list {
			if t.supports(framework, mode) == "" {
				out = append(out, t)
			}
		}
		if len(out) == 0 {
			return nil, usage("no tracer is for %s in %s mode", framework, mode)
		}
		return out, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(list, func(t Tracer) bool { return t.Name == name })
		if i < 0 {
			all := make([]string, len(list))
			for i := range list {
				all[i] = list[i].Name
			}
			return nil, usage("there is no tracer %q; there are %s", name, strings.Join(all, ", "))
		}
		if why := list[i].supports(framework, mode); why != "" {
			return nil, usage("%s", why)
		}
		if !slices.ContainsFunc(out, func(t Tracer) bool { return t.Name == name }) {
			out = append(out, list[i])
		}
	}
	return out, nil
}
