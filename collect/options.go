package collect

import (
	"slices"
	"strings"
	"time"
)

// Frameworks and modes.
const (
	HuggingFace = "huggingface"
	VLLM        = "vllm"
	Eval        = "eval"
	Train       = "train"
)

// Options are everything that a run is told.
type Options struct {
	Framework string
	Mode      string
	Models    []Model
	Tracers   []string // empty: all that fit
	// TracerPath names files and packages with more tracers.
	TracerPath []string

	OutputDir string
	// Flat puts a tracer's directory right into OutputDir.
	Flat bool

	Device         string // auto, cpu, cuda
	DType          string
	TensorParallel int
	BatchSize      int
	SequenceLength int // 0: as the inputs are
	Layers         int // 0: all
	Prompts        []string
	Seed           int
	DummyWeights   bool
	TrustCode      bool
	TracerOptions  map[string]map[string]any

	Force, Offline  bool
	Jobs            int
	DownloadWorkers int
	GPUs            []string // nil: those that torch sees
	Retry           int
	Timeout         time.Duration
	StallTimeout    time.Duration
	DownloadTimeout time.Duration
	MaxRSS          int64
	HFEndpoint      string

	Python string
	Config *Config
	Writer string // names the program in status files

	// Planned is told how many jobs there are before the first one runs.
	Planned func(jobs int)
	// Report is called as each job ends, from one goroutine at a time.
	Report func(Report)
	// Notice is called with something worth a line that belongs to no job.
	Notice func(string)
	// OnFinished is called behind a job that ran and succeeded, before its
	// report. An error is reported with the job and makes it count as failed.
	OnFinished func(Job, *Status) error

	// Of tests: an environment instead of the process's own, a worker instead
	// of the embedded one.
	environ   []string
	workerDir string
}

// Defaults of the limits.
const (
	DefaultTimeout      = 30 * time.Minute
	DefaultStallTimeout = 10 * time.Minute
)

func (o *Options) check() error {
	if o.Framework != HuggingFace && o.Framework != VLLM {
		return usage("--framework %q: want huggingface or vllm", o.Framework)
	}
	if o.Mode != Eval && o.Mode != Train {
		return usage("--mode %q: want eval or train", o.Mode)
	}
	if !slices.Contains([]string{"auto", "float32", "float16", "bfloat16"}, o.DType) {
		return usage("--dtype %q: want auto, float32, float16 or bfloat16", o.DType)
	}
	for flag, n := range map[string]int{"--tensor-parallel-size": o.TensorParallel, "--batch-size": o.BatchSize, "--download-workers": o.DownloadWorkers} {
		if n < 1 {
			return usage("%s: at least 1", flag)
		}
	}
	for flag, n := range map[string]int{"--jobs": o.Jobs, "--sequence-length": o.SequenceLength, "--layers": o.Layers, "--retry": o.Retry} {
		if n < 0 {
			return usage("%s must not be negative", flag)
		}
	}
	for flag, d := range map[string]time.Duration{"--timeout": o.Timeout, "--stall-timeout": o.StallTimeout, "--download-timeout": o.DownloadTimeout} {
		if d < 0 {
			return usage("%s must not be negative", flag)
		}
	}
	switch kind, index, _ := strings.Cut(o.Device, ":"); {
	case kind == "cuda" && index != "":
		if len(o.GPUs) > 0 {
			return usage("--device %s names one GPU and --gpus others; give one of them", o.Device)
		}
		o.Device, o.GPUs = "cuda", []string{index}
	case o.Device != "auto" && o.Device != "cpu" && o.Device != "cuda":
		return usage("--device %q: want auto, cpu, cuda or cuda:N", o.Device)
	}
	if o.Framework == HuggingFace && o.TensorParallel > 1 {
		return usage("--tensor-parallel-size is for vllm; huggingface tracers run on one device")
	}
	if o.OutputDir == "" {
		return usage("say where to with --output-dir DIR")
	}
	if len(o.Models) == 0 {
		return usage("name a model with --model, or some with --model-list FILE")
	}
	if o.Config == nil {
		o.Config = &Config{}
	}
	return nil
}
