package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"regexp"
	"strconv"

	"tracelake/internal/digest"
	"tracelake/schema"
)

// UnknownRank is the rank in the path of a trace whose rank nothing tells.
// Only an integer keeps the partition key an integer for every reader;
// traces.rank is null for such a trace.
const UnknownRank = -1

const partHexLen = 12

// TraceID returns the trace ID of a content: the start of its digest,
// given in hexadecimal digits. The same content has the same ID wherever it lies.
func TraceID(contentDigest string) (string, error) {
	if !digest.Valid(contentDigest) {
		return "", fmt.Errorf("lake: %q is not a digest in hexadecimal digits", contentDigest)
	}
	return contentDigest[:schema.TraceIDLen], nil
}

// RejectedTraceID returns the trace ID of an input that cannot be imported. It
// depends on the path, too: two empty files are two failures and not one.
func RejectedTraceID(contentDigest, sourcePath string) string {
	sum := sha256.Sum256([]byte("rejected\n" + contentDigest + "\n" + sourcePath))
	return hex.EncodeToString(sum[:])[:schema.TraceIDLen]
}

// partExt ends the names of parts, unless a record asks for another format.
const partExt = ".parquet"

// content tells the parts of this trace from those of others. Inputs that failed
// are told apart by their trace IDs: they may hold the same bytes, or none.
func (r *Record) content() string {
	if r.Outcome == OutcomeRejected {
		return r.TraceID
	}
	return r.ContentDigest
}

// PartName returns the file name that the rows of a trace have in every table.
// It depends on nothing but the arguments and the schema version, so that a
// retry writes the same bytes under the same name.
func PartName(content, options, run string, rank int64) string {
	h := sha256.New()
	for _, s := range []string{content, strconv.Itoa(schema.Version), options, run, strconv.FormatInt(rank, 10)} {
		fmt.Fprintf(h, "%d:%s\n", len(s), s)
	}
	return "part-" + hex.EncodeToString(h.Sum(nil))[:partHexLen] + partExt
}

// Partitioned reports whether the path of a table's parts holds run and rank.
// A table that has them as columns is not partitioned: pandas refuses files
// that repeat a key of their path, and polars lets the key overrule a null.
func Partitioned(t *schema.Table) bool { return t.Col("run") < 0 && t.Col("rank") < 0 }

// partPattern tells parts from files that other programs put beside them.
var partPattern = regexp.MustCompile(`^part-[0-9a-f]{12}\.(parquet|arrow)$`)

// PartPath returns the path of a part within the lake, separated by slashes.
func PartPath(table, run string, rank int64, name string) string {
	if t := schema.TableByName(table); t != nil && !Partitioned(t) {
		return path.Join(table, name)
	}
	return path.Join(table, "run="+run, "rank="+strconv.FormatInt(rank, 10), name)
}
