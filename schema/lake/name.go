package lake

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strconv"

	"tracelake/schema"
)

// UnknownRank is the rank in the path of a trace whose rank nothing tells.
// Only an integer keeps the partition key an integer for every reader;
// traces.rank is null for such a trace.
const UnknownRank = -1

const partHexLen = 12

// TraceID returns the trace ID of a content: the start of its SHA-256, given
// in hexadecimal digits. The same content has the same ID wherever it lies.
func TraceID(contentSHA256 string) (string, error) {
	if b, err := hex.DecodeString(contentSHA256); err != nil || len(b) != sha256.Size {
		return "", fmt.Errorf("lake: %q is not a SHA-256 in hexadecimal digits", contentSHA256)
	}
	return contentSHA256[:schema.TraceIDLen], nil
}

// RejectedTraceID returns the trace ID of an input that cannot be imported. It
// depends on the path, too: two empty files are two failures and not one.
func RejectedTraceID(contentSHA256, sourcePath string) string {
	sum := sha256.Sum256([]byte("rejected\n" + contentSHA256 + "\n" + sourcePath))
	return hex.EncodeToString(sum[:])[:schema.TraceIDLen]
}

// partExt ends the names of parts, unless a record asks for another format.
const partExt = ".parquet"

// PartName returns the file name that the rows of a trace have in every table.
// It depends on nothing but the arguments and the schema version, so that a
// retry writes the same bytes under the same name.
func PartName(contentSHA256, options, run string, rank int64) string {
	h := sha256.New()
	for _, s := range []string{contentSHA256, strconv.Itoa(schema.Version), options, run, strconv.FormatInt(rank, 10)} {
		fmt.Fprintf(h, "%d:%s\n", len(s), s)
	}
	return "part-" + hex.EncodeToString(h.Sum(nil))[:partHexLen] + partExt
}

// Partitioned reports whether the path of a table's parts holds run and rank.
// A table that has them as columns is not partitioned: pandas refuses files
// that repeat a key of their path, and polars lets the key overrule a null.
func Partitioned(t *schema.Table) bool { return t.Col("run") < 0 && t.Col("rank") < 0 }

// PartPath returns the path of a part within the lake, separated by slashes.
func PartPath(table, run string, rank int64, name string) string {
	if t := schema.TableByName(table); t != nil && !Partitioned(t) {
		return path.Join(table, name)
	}
	return path.Join(table, "run="+run, "rank="+strconv.FormatInt(rank, 10), name)
}
