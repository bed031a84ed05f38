package link

import (
	"regexp"
	"strings"

	"tracelake/schema"
)

// iterationPrefix starts the name of every range that marks an iteration the
// way the reference does.
const iterationPrefix = "stormlog.iteration/"

// ParseIterationName reads the name of an iteration range of the form
// stormlog.iteration/PRODUCER/ID. The producer ends at the first slash; the ID
// keeps any further slashes, blanks and control characters. It reports false
// when a part is missing or empty.
func ParseIterationName(name string) (schema.EntityRef, bool) {
	rest, ok := strings.CutPrefix(name, iterationPrefix)
	if !ok {
		return schema.EntityRef{}, false
	}
	producer, id, _ := strings.Cut(rest, "/")
	if producer == "" || id == "" {
		return schema.EntityRef{}, false
	}
	return schema.EntityRef{Producer: producer, ID: id}, true
}

// Family is a way of marking iterations. Families that are more specific are
// greater.
type Family uint8

// Families.
const (
	NoFamily     Family = iota
	ProfilerStep        // ProfilerStep#N of the PyTorch profiler
	EngineStep          // steps of a serving engine: sglang, xdit
	EngineBatch         // batches as vllm marks them; SGLang's steps lie in them where both are written
	Stormlog            // stormlog.iteration/PRODUCER/ID
	UserPattern         // a pattern that the user gave
)

// String returns a name for messages.
func (f Family) String() string {
	return [...]string{"none", "ProfilerStep", "engine steps", "engine batches", "stormlog ranges", "user pattern"}[min(f, UserPattern)]
}

// Mark is what the name of a range says about iterations.
type Mark struct {
	Ref    schema.EntityRef
	Family Family
	// ProcessWide marks hold launches of every thread of the process: backward
	// passes and engine workers launch from other threads than the marking one.
	ProcessWide bool
}

// Pattern is a user-given recogniser: the first capture group of Expr is the
// iteration's ID.
type Pattern struct {
	Producer string // "pattern" where empty
	Expr     *regexp.Regexp
}

// Marks recognises iteration marks. The zero value knows the built-in ones.
type Marks struct {
	UserPatterns []Pattern
}

// Match returns what a range name marks. User patterns come first, in order.
// An empty capture is no match.
func (m *Marks) Match(name string) (Mark, bool) {
	for _, p := range m.UserPatterns {
		g := p.Expr.FindStringSubmatch(name)
		if len(g) < 2 || g[1] == "" {
			continue
		}
		producer := p.Producer
		if producer == "" {
			producer = "pattern"
		}
		return Mark{schema.EntityRef{Producer: producer, ID: g[1]}, UserPattern, true}, true
	}
	if ref, ok := ParseIterationName(name); ok {
		return Mark{ref, Stormlog, false}, true
	}
	if n, ok := strings.CutPrefix(name, "ProfilerStep#"); ok && digits(n) == len(n) && n != "" {
		return Mark{schema.EntityRef{Producer: "ProfilerStep", ID: n}, ProfilerStep, true}, true
	}
	if producer := engine(name); producer != "" {
		family := EngineStep
		if producer == "vllm" {
			family = EngineBatch
		}
		return Mark{schema.EntityRef{Producer: producer, ID: name}, family, true}, true
	}
	return Mark{}, false
}

// engine returns the serving engine whose step mark the name is, or "".
func engine(name string) string {
	switch {
	case strings.HasPrefix(name, "execute_diffusion_") && len(name) > len("execute_diffusion_"):
		return "xdit"
	case strings.HasPrefix(name, "execute_"):
		if _, ok := ParseEngineStep(name); ok {
			return "vllm"
		}
	case strings.HasPrefix(name, "step[") && strings.HasSuffix(name, "]") && strings.Contains(name, " bs="):
		return "sglang"
	}
	return ""
}

// ChooseFamily returns the family that marks iterations where several occur in
// one trace: what the user asked for, then explicit ranges, then engine batches
// and steps, then profiler steps. Marks of other families are not used for linking, since
// they nest and every launch would be ambiguous.
func ChooseFamily(present ...Family) (best Family) {
	for _, f := range present {
		best = max(best, f)
	}
	return best
}

// digits returns how many decimal digits s starts with.
func digits(s string) (n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}
