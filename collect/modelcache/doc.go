// Package modelcache judges, without loading anything, whether a model's files
// are whole: in the hub's cache (refs, snapshots, blobs, trees) or in any
// directory. An engine that starts on half a model fails late or hangs; this
// fails early and says what is missing.
package modelcache

const (
	maxJSON   = 64 << 20  // bytes of a config, index or tree listing
	maxHeader = 100 << 20 // bytes of a safetensors header; the format's own limit is 100 MB
	maxRef    = 1 << 10
	// Problems reported of one model.
	maxProblems = 50
)

// Problem is something that makes a model unusable.
type Problem struct {
	Code string `json:"code"`
	File string `json:"file,omitempty"`
	Text string `json:"message"`
}

func (p Problem) String() string {
	if p.File == "" {
		return p.Text
	}
	return p.File + ": " + p.Text
}

// Codes of problems.
const (
	NoSnapshot = "no_snapshot"
	NoConfig   = "no_config"
	BadConfig  = "bad_config"
	NoToken    = "no_tokenizer"
	NoWeights  = "no_weights"
	Missing    = "missing_file"
	Size       = "wrong_size"
	Header     = "bad_header"
	Index      = "bad_index"
	Incomplete = "incomplete_download"
	Dangling   = "dangling_link"
	Escape     = "link_out_of_cache"
	Pointer    = "lfs_pointer"
	Unreadable = "unreadable"
)

// Need says what of a model a job uses.
type Need struct {
	Weights   bool
	Tokenizer bool
	// ShardsFirst is what a loader takes where a file of all weights lies beside
	// an index of shards: transformers the file, vLLM the shards.
	ShardsFirst bool
}

// report collects problems up to a limit.
type report struct{ list []Problem }

func (r *report) add(code, file, text string) {
	if len(r.list) < maxProblems {
		r.list = append(r.list, Problem{code, file, text})
	}
}
