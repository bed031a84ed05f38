package link

import (
	"strconv"
	"strings"

	"tracelake/schema"
)

// EngineStepInfo is what the name of a vLLM step says about its batch.
type EngineStepInfo struct {
	ContextRequests    int64             // requests in prefill
	GenerationRequests int64             // requests in decode
	ContextTokens      schema.Opt[int64] // tokens of the requests in prefill
	GenerationTokens   schema.Opt[int64] // tokens of the requests in decode
	BatchTokens        schema.Opt[int64] // tokens of the whole step
}

// ParseEngineStep reads execute_context_R(T)_generation_R(T), whose R are
// requests and T tokens, and the form execute_B_context_R(…)_generation_R(…)
// of annotated engines, whose brackets hold attention shapes. Tokens are
// unknown where a bracket is not a plain number.
func ParseEngineStep(name string) (s EngineStepInfo, ok bool) {
	rest, ok := strings.CutPrefix(name, "execute_")
	if !ok {
		return s, false
	}
	if n := digits(rest); n > 0 {
		if s.BatchTokens = number(rest[:n]); !s.BatchTokens.OK || n == len(rest) || rest[n] != '_' {
			return s, false
		}
		rest = rest[n+1:]
	}
	if s.ContextRequests, s.ContextTokens, rest, ok = part(rest, "context_"); !ok {
		return s, false
	}
	s.GenerationRequests, s.GenerationTokens, rest, ok = part(rest, "_generation_")
	return s, ok && rest == ""
}

// part reads PREFIX, a number and a bracket.
func part(s, prefix string) (requests int64, tokens schema.Opt[int64], rest string, ok bool) {
	s, ok = strings.CutPrefix(s, prefix)
	n := digits(s)
	r := number(s[:n])
	end := strings.IndexByte(s, ')')
	if !ok || !r.OK || n == len(s) || s[n] != '(' || end < 0 {
		return 0, tokens, "", false
	}
	return r.V, number(s[n+1 : end]), s[end+1:], true
}

// number reads a plain decimal number.
func number(s string) schema.Opt[int64] {
	if s == "" || digits(s) != len(s) {
		return schema.Opt[int64]{}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	return schema.Opt[int64]{V: v, OK: err == nil}
}
