package kineto

import (
	"path/filepath"
	"regexp"
	"strconv"

	"tracelake/schema"
)

// rankPatterns are the ways in which launchers put the rank in a file name,
// most specific first: PyTorch, Megatron and vLLM (rank3, rank_3, rank-3,
// dp0_pp0_tp1_dcp0_ep0_rank1), and torchtune (r3-…, _r3.).
var rankPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(?i)(?:^|[^a-z])rank[_\-\[=]?(\d{1,6})(?:\D|$)`),
	regexp.MustCompile(`(?:^|[^A-Za-z0-9])r(\d{1,6})(?:[^A-Za-z0-9]|$)`),
}

// parallelPattern finds the coordinates that SGLang writes (TP-1-DP-0-PP-0).
var parallelPattern = regexp.MustCompile(`(?:^|[^A-Za-z])(TP|DP|PP|EP)-(\d+)`)

// parallelRank returns the rank that coordinates give: the TP rank where all
// others are 0. With others the rank depends on sizes that the name lacks.
func parallelRank(name string) schema.Opt[int64] {
	rank := schema.Opt[int64]{}
	for _, m := range parallelPattern.FindAllStringSubmatch(name, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		switch {
		case err != nil || n > 999_999: // no rank, as in the other patterns
			return schema.Opt[int64]{}
		case m[1] == "TP":
			rank = schema.Some(n)
		case m[1] != "EP" && n != 0: // EP ranks lie within TP ranks
			return schema.Opt[int64]{}
		}
	}
	return rank
}

// RankInName returns the rank that a file name states, if it states one.
func RankInName(path string) schema.Opt[int64] {
	name := filepath.Base(path)
	if r := parallelRank(name); r.OK {
		return r
	}
	for _, p := range rankPatterns {
		if m := p.FindAllStringSubmatch(name, -1); m != nil {
			n, err := strconv.ParseInt(m[len(m)-1][1], 10, 64)
			if err == nil {
				return schema.Some(n)
			}
		}
	}
	return schema.Opt[int64]{}
}
