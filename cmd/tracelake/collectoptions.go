package main

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"tracelake/collect"
	"tracelake/internal/regular"
)

type collectOptions struct {
	framework, mode, device, dtype, outputDir string
	models, tracers, tracerPath, gpus         []string
	modelList, skipList, promptFile, config   string
	hfEndpoint, python, describeTracer        string
	jobs, downloadWorkers, tensorParallel     int
	batchSize, sequenceLength, layers, retry  int
	seed                                      int
	timeout, stallTimeout, downloadTimeout    time.Duration
	maxRSS                                    sizeValue
	force, offline, dummyWeights, trustCode   bool
	listTracers, json, quiet                  bool
	modelPath, tracer                         string
	flat                                      bool
}

func (o *collectOptions) flags(f *pflag.FlagSet) {
	o.jobFlags(f)
	f.StringArrayVar(&o.models, "model", nil, "ORG/NAME, ORG/NAME@REVISION, or a path that begins with / or ./ (repeatable)")
	f.StringVar(&o.modelList, "model-list", "", "file with one model per line; # begins a comment line")
	f.StringVar(&o.skipList, "skip-model-list", "", "file with models to leave out")
	f.StringSliceVar(&o.tracers, "tracers", nil, "tracers to run, or all (default: all that fit)")
	f.BoolVar(&o.listTracers, "list-tracers", false, "list the tracers and end")
	f.StringVar(&o.describeTracer, "describe-tracer", "", "describe one tracer and end")
	f.IntVar(&o.downloadWorkers, "download-workers", 4, "models fetched at once")
	f.StringVar(&o.hfEndpoint, "hf-endpoint", "", "URL of a mirror of the model hub")
	f.BoolVar(&o.offline, "offline", false, "use only models that are in the cache")
	f.DurationVar(&o.downloadTimeout, "download-timeout", 0, "end a download after this long (0: never)")
	f.IntVar(&o.jobs, "jobs", 0, "jobs at once (default: 1 on CPU, one per set of GPUs otherwise)")
	f.StringSliceVar(&o.gpus, "gpus", nil, "GPUs to share out, by index or UUID (default: all that torch sees)")
}

// workerFlags are those of the worker command.
func (o *collectOptions) workerFlags(f *pflag.FlagSet) {
	o.jobFlags(f)
	f.StringVar(&o.modelPath, "model-path", "", "directory of the model (required)")
	f.StringVar(&o.tracer, "tracer", "", "tracer to run (required)")
	f.StringSliceVar(&o.gpus, "gpus", nil, "GPUs to use, by index or UUID")
}

// jobFlags are those that both commands have.
func (o *collectOptions) jobFlags(f *pflag.FlagSet) {
	f.StringVar(&o.framework, "framework", "", "huggingface or vllm (required)")
	f.StringVar(&o.mode, "mode", collect.Eval, "eval or train")
	f.StringVar(&o.outputDir, "output-dir", "", "where results go (required)")
	f.BoolVar(&o.force, "force", false, "run again what is there; a failure leaves the old result")
	f.StringVar(&o.device, "device", "auto", "auto, cpu, cuda or cuda:N")
	f.IntVar(&o.tensorParallel, "tensor-parallel-size", 1, "GPUs per job (vllm)")
	f.StringVar(&o.dtype, "dtype", "auto", "auto, float32, float16 or bfloat16")
	f.IntVar(&o.batchSize, "batch-size", 1, "sequences per step")
	f.IntVar(&o.sequenceLength, "sequence-length", 0, "tokens per sequence (default: as the prompts are)")
	f.StringVar(&o.promptFile, "prompt-file", "", "file with one prompt per line")
	f.IntVar(&o.layers, "layers", 0, "keep only the first N layers of the model")
	f.BoolVar(&o.dummyWeights, "dummy-weights", false, "random weights: configuration and tokenizer are enough")
	f.BoolVar(&o.trustCode, "trust-remote-code", false, "run code that comes with the model")
	f.IntVar(&o.seed, "seed", 0, "of random weights and inputs")
	f.DurationVar(&o.timeout, "timeout", collect.DefaultTimeout, "end a job after this long (0: never)")
	f.DurationVar(&o.stallTimeout, "stall-timeout", collect.DefaultStallTimeout, "end a job that neither advances nor prints for this long (0: never)")
	f.Var(&o.maxRSS, "max-rss", "end a job whose processes take more memory together (0: no limit)")
	f.IntVar(&o.retry, "retry", 0, "more attempts at a job that crashed, hung or ran out of memory, or a download that failed")
	f.StringArrayVar(&o.tracerPath, "tracer-path", nil, "file or package with more tracers (repeatable)")
	f.StringVar(&o.python, "python", "", "interpreter (default: the active environment, else python3)")
	f.StringVar(&o.config, "config", "", "YAML file with defaults")
	f.BoolVar(&o.json, "json", false, "print one JSON object per job, then a summary")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "print problems only")
}

// options turns flags, and the file of defaults below them, into a run.
func (o *collectOptions) options(f *pflag.FlagSet) (collect.Options, error) {
	cfg := &collect.Config{}
	if o.config != "" {
		var err error
		if cfg, err = collect.ReadConfig(o.config); err != nil {
			return collect.Options{}, err
		}
		if err := o.defaults(f, cfg); err != nil {
			return collect.Options{}, err
		}
	}
	out := collect.Options{
		Framework: o.framework, Mode: o.mode, Tracers: o.tracers, TracerPath: o.tracerPath, OutputDir: o.outputDir, Flat: o.flat,
		Device: o.device, DType: o.dtype, TensorParallel: o.tensorParallel, BatchSize: o.batchSize, SequenceLength: o.sequenceLength,
		Layers: o.layers, Seed: o.seed, DummyWeights: o.dummyWeights, TrustCode: o.trustCode, TracerOptions: cfg.TracerOptions,
		Force: o.force || cfg.Force(), Offline: o.offline, Jobs: o.jobs, DownloadWorkers: max(o.downloadWorkers, 0), GPUs: o.gpus, Retry: o.retry,
		Timeout: o.timeout, StallTimeout: o.stallTimeout, DownloadTimeout: o.downloadTimeout, MaxRSS: int64(o.maxRSS),
		HFEndpoint: o.hfEndpoint, Python: o.python, Config: cfg, Writer: writer(),
	}
	if o.framework == "" {
		return out, errUsage("say which framework with --framework huggingface or vllm")
	}
	if o.hfEndpoint != "" {
		u, err := url.Parse(o.hfEndpoint)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return out, errUsage("--hf-endpoint %q: want a URL with http or https", o.hfEndpoint)
		}
		out.HFEndpoint = strings.TrimSuffix(o.hfEndpoint, "/")
	}
	var err error
	if out.Prompts, err = readPrompts(o.promptFile); err != nil {
		return out, err
	}
	if o.flat {
		return out, o.single(&out)
	}
	out.Models, err = o.chosenModels()
	return out, err
}

// single sets up the worker command: one directory, one tracer.
func (o *collectOptions) single(out *collect.Options) error {
	if o.modelPath == "" || o.tracer == "" || o.tracer == "all" || strings.Contains(o.tracer, ",") {
		return errUsage("worker: name the model's directory with --model-path and one tracer with --tracer")
	}
	path := o.modelPath
	if !strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "~/") {
		path = "./" + path
	}
	m, err := collect.ParseModel(path)
	if err != nil {
		return err
	}
	out.Models, out.Tracers, out.Offline, out.DownloadWorkers = []collect.Model{m}, []string{o.tracer}, true, 1
	return nil
}

func (o *collectOptions) chosenModels() ([]collect.Model, error) {
	var models, skip []collect.Model
	for _, text := range o.models {
		m, err := collect.ParseModel(strings.TrimSpace(text))
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	if o.modelList != "" {
		list, err := collect.ReadModelList(o.modelList)
		if err != nil {
			return nil, err
		}
		models = append(models, list...)
	}
	if len(models) == 0 {
		return nil, errUsage("name a model with --model, or some with --model-list FILE")
	}
	if o.skipList != "" {
		var err error
		if skip, err = collect.ReadModelList(o.skipList); err != nil {
			return nil, err
		}
	}
	models = collect.Without(models, skip)
	if len(models) == 0 {
		return nil, errUsage("every model is in the skip list")
	}
	return models, nil
}

// defaults sets flags that were not given from the file.
func (o *collectOptions) defaults(f *pflag.FlagSet, cfg *collect.Config) error {
	set := func(name, value string) error {
		flag := f.Lookup(name)
		early := []string{"config", "help", "list-tracers", "describe-tracer", "die-with"} // looked at before the file
		if flag == nil || slices.Contains(early, name) || serverOnly(name) {
			return errUsage("%s: options.%s is no option of this command", o.config, name)
		}
		if flag.Changed {
			return nil
		}
		if err := f.Set(name, value); err != nil {
			return errUsage("%s: options.%s: %v", o.config, name, err)
		}
		return nil
	}
	for name, value := range cfg.Options {
		values := []any{value}
		if list, ok := value.([]any); ok {
			values = list
		}
		given := f.Lookup(name) != nil && f.Lookup(name).Changed
		for i, v := range values {
			if flag := f.Lookup(name); i > 0 && flag != nil && !given {
				flag.Changed = false // the second value of a list
			}
			if err := set(name, fmt.Sprint(v)); err != nil {
				return err
			}
		}
	}
	trace := cfg.Timeouts.HFTrace
	if o.framework == collect.VLLM {
		trace = cfg.Timeouts.VLLMTrace
	}
	for flag, d := range map[string]*collect.Duration{
		"timeout": trace, "stall-timeout": cfg.Timeouts.Stall, "download-timeout": cfg.Timeouts.Download,
	} {
		if d != nil && f.Lookup(flag) != nil {
			if err := set(flag, time.Duration(*d).String()); err != nil {
				return err
			}
		}
	}
	return nil
}

const maxPrompts = 16 << 20

// readPrompts reads one prompt per line; blank lines are none.
func readPrompts(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() || st.Size() > maxPrompts {
		return nil, errUsage("--prompt-file %s: want a file of at most %d bytes", path, maxPrompts)
	}
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, errUsage("--prompt-file %s: not UTF-8", path)
	}
	var out []string
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		if s := strings.TrimRight(string(line), "\r\n"); strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	if len(out) == 0 {
		return nil, errUsage("--prompt-file %s: no prompt in it", path)
	}
	return out, nil
}
