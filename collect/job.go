package collect

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Job is one tracer on one model.
type Job struct {
	Model     Model
	Tracer    Tracer
	Framework string
	Mode      string
	Device    string // cpu or cuda
	Dir       string // of the results

	// Known once the model is there.
	ModelPath string
	Revision  string // commit, or the fingerprint of a directory

	key map[string]any
}

// workerJob is the job file of a worker.
type workerJob struct {
	Protocol       int            `json:"protocol"`
	Framework      string         `json:"framework"`
	ModelID        *string        `json:"model_id"`
	ModelPath      *string        `json:"model_path"`
	Revision       *string        `json:"revision"`
	Tracer         string         `json:"tracer"`
	Mode           string         `json:"mode"`
	OutputDir      string         `json:"output_dir"`
	Device         string         `json:"device"`
	TensorParallel int            `json:"tensor_parallel_size"`
	DType          string         `json:"dtype"`
	BatchSize      int            `json:"batch_size"`
	SequenceLength *int           `json:"sequence_length"`
	Prompts        []string       `json:"prompts"`
	Layers         *int           `json:"layers"`
	DummyWeights   bool           `json:"dummy_weights"`
	TrustCode      bool           `json:"trust_remote_code"`
	Seed           int            `json:"seed"`
	Options        map[string]any `json:"options"`
	TracerPath     []string       `json:"tracer_path"`
	Heartbeat      float64        `json:"heartbeat_seconds"`
}

func (o *Options) workerJob(m Model) workerJob {
	j := workerJob{
		Protocol: 1, Framework: o.Framework, Mode: o.Mode, Device: o.Device, TensorParallel: o.TensorParallel, DType: o.DType,
		BatchSize: o.BatchSize, Prompts: o.Prompts, DummyWeights: o.DummyWeights, TrustCode: o.TrustCode, Seed: o.Seed,
		Options: map[string]any{}, TracerPath: absolutePaths(o.TracerPath), Heartbeat: 1,
	}
	if m.Path == "" {
		j.ModelID = &m.ID
	}
	if o.SequenceLength > 0 {
		j.SequenceLength = &o.SequenceLength
	}
	if o.Layers > 0 {
		j.Layers = &o.Layers
	}
	return j
}

// keyParts are everything that a result depends on.
func (o *Options) keyParts(j *Job, probe *Probe) map[string]any {
	versions := map[string]string{"python": probe.Python.Version}
	names := []string{"torch", "transformers", "triton"}
	if j.Framework == VLLM {
		names = append(names, "vllm")
	}
	for _, n := range names {
		if v := probe.Libraries[n].Version; v != "" {
			versions[n] = v
		}
	}
	parts := map[string]any{
		"framework": j.Framework, "model": j.Model.ID, "tracer": j.Tracer.Name, "tracer_version": j.Tracer.Version,
		"mode": j.Mode, "device": j.Device, "dtype": o.DType, "tensor_parallel_size": o.TensorParallel,
		"batch_size": o.BatchSize, "sequence_length": o.SequenceLength, "layers": o.Layers, "seed": o.Seed,
		"dummy_weights": o.DummyWeights, "trust_remote_code": o.TrustCode, "prompts": digestOf(o.Prompts),
		"options": digestOf(o.TracerOptions[j.Tracer.Name]), "versions": versions,
	}
	if src := tracerSource(&j.Tracer, o.TracerPath); src != "" {
		parts["tracer_source"] = src
	}
	return parts
}

// tracerSource is the digest of a user's tracer file: its author may forget to
// raise the version.
func tracerSource(t *Tracer, paths []string) string {
	if t.Source == "" || t.Source == "built-in" {
		return ""
	}
	for _, p := range paths {
		if p != t.Source && filepath.Base(p) != filepath.Base(t.Source) {
			continue
		}
		if sum, err := sourceDigest(p); err == nil {
			return sum
		}
	}
	return ""
}

// sourceDigest is that of a file, or of the Python files below a directory.
func sourceDigest(path string) (string, error) {
	h := sha256.New()
	path, err := filepath.EvalSymlinks(path) // which WalkDir does not follow
	if err != nil {
		return "", err
	}
	err = filepath.WalkDir(path, func(name string, _ fs.DirEntry, err error) error {
		if err != nil || name != path && filepath.Ext(name) != ".py" {
			return err
		}
		if st, err := os.Stat(name); err != nil || !st.Mode().IsRegular() {
			return nil // a directory, or a link that leads nowhere
		}
		sum, err := fileDigest(name)
		rel, _ := filepath.Rel(path, name)
		fmt.Fprintf(h, "%q %s\n", rel, sum)
		return err
	})
	return hex.EncodeToString(h.Sum(nil)[:8]), err
}

// digestOf is empty for what is empty, so that a key says which options were
// given.
func digestOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil || string(text) == "null" || string(text) == "{}" || string(text) == "[]" {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// resolve fills in the model and returns the parts of the key with it.
func (j *Job) resolve(path, revision string) {
	j.ModelPath, j.Revision = path, revision
	j.key["revision"] = revision
}

// keyHash names the parts of a key; maps are marshalled in order.
func keyHash(parts map[string]any) string {
	text, err := json.Marshal(parts)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
