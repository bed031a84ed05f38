package collect

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"tracelake/internal/regular"
)

// Config is a file of defaults. Flags and the user's own environment win.
type Config struct {
	// Env holds variables by where they apply: common (downloads and tracers),
	// offline (tracers), a framework, or a tracer.
	Env map[string]map[string]string `yaml:"env"`
	// Timeouts in seconds, or with a unit (90s, 15m).
	Timeouts struct {
		Download  *Duration `yaml:"download"`
		HFTrace   *Duration `yaml:"hf_trace"`
		VLLMTrace *Duration `yaml:"vllm_trace"`
		Stall     *Duration `yaml:"stall"`
	} `yaml:"timeouts"`
	Behavior struct {
		BypassIfExists    *bool  `yaml:"bypass_if_exists"`
		ContinueOnFailure *bool  `yaml:"continue_on_failure"`
		IfExists          string `yaml:"if_exists"`
	} `yaml:"behavior"`
	// Options are defaults of flags by their names.
	Options map[string]any `yaml:"options"`
	// TracerOptions are passed to a tracer as they are.
	TracerOptions map[string]map[string]any `yaml:"tracer_options"`
}

// Duration is a time in a file of defaults.
type Duration time.Duration

// UnmarshalYAML reads seconds, or a number with a unit; 0 is no limit.
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	var seconds float64
	if n.Decode(&seconds) == nil {
		if !(seconds >= 0 && seconds <= 1e9) { // neither holds of NaN
			return fmt.Errorf("line %d: %q is no number of seconds", n.Line, n.Value)
		}
		*d = Duration(seconds * float64(time.Second))
		return nil
	}
	v, err := time.ParseDuration(n.Value)
	if err != nil || v < 0 {
		return fmt.Errorf("line %d: %q is neither seconds nor a duration such as 15m", n.Line, n.Value)
	}
	*d = Duration(v)
	return nil
}

const maxConfig = 4 << 20

// ReadConfig reads a YAML file (JSON is YAML, too). Unknown keys are errors.
func ReadConfig(path string) (*Config, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxConfig {
		return nil, usage("%s: larger than %d bytes, which no configuration is", path, maxConfig)
	}
	c := &Config{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(c); err != nil && !errors.Is(err, io.EOF) {
		return nil, usage("%s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	}
	if b := c.Behavior.ContinueOnFailure; b != nil && !*b {
		return nil, usage("%s: behavior.continue_on_failure: false is not offered; a failed job never ends the others, and the exit code tells", path)
	}
	if s := c.Behavior.IfExists; s != "" && s != "skip" && s != "overwrite" {
		return nil, usage("%s: behavior.if_exists: %q; want skip or overwrite", path, s)
	}
	for section, vars := range c.Env {
		for name := range vars {
			if name == "" || strings.ContainsAny(name, "=\x00") {
				return nil, usage("%s: env.%s: %q is no name of a variable", path, section, name)
			}
		}
	}
	return c, nil
}

// Force says whether the file asks to redo what is there.
func (c *Config) Force() bool {
	return c.Behavior.BypassIfExists != nil && !*c.Behavior.BypassIfExists || c.Behavior.IfExists == "overwrite"
}

// environ lays an environment over the defaults of some sections: a variable
// that the user set is never changed.
func (c *Config) environ(base []string, sections ...string) []string {
	has := map[string]bool{}
	for _, kv := range base {
		k, _, _ := strings.Cut(kv, "=")
		has[k] = true
	}
	chosen := map[string]string{}
	for _, s := range sections {
		maps.Copy(chosen, c.Env[s])
	}
	out := slices.Clone(base)
	for _, k := range slices.Sorted(maps.Keys(chosen)) {
		if !has[k] {
			out = append(out, k+"="+chosen[k])
		}
	}
	return out
}

// lookup finds a variable in an environment; the last one counts.
func lookup(env []string, name string) string {
	for _, kv := range slices.Backward(env) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// with sets variables in an environment, whatever was there.
func with(env []string, kv ...string) []string {
	out := slices.DeleteFunc(slices.Clone(env), func(have string) bool {
		k, _, _ := strings.Cut(have, "=")
		return slices.ContainsFunc(kv, func(set string) bool { return strings.HasPrefix(set, k+"=") })
	})
	return append(out, kv...)
}
