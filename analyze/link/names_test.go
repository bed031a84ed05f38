package link

import (
	"regexp"
	"strings"
	"testing"

	"tracelake/schema"
)

func TestParseIterationName(t *testing.T) {
	for name, want := range map[string]string{
		"stormlog.iteration/p/1":            "p|1",
		"stormlog.iteration/p/a/b/c":        "p|a/b/c",
		"stormlog.iteration/p//":            "p|/",
		"stormlog.iteration/ p / q ":        " p | q ",
		"stormlog.iteration/p/a\nb":         "p|a\nb",
		"stormlog.iteration/vllm:h:b:1:2/7": "vllm:h:b:1:2|7",
		"stormlog.iteration/p":              "",
		"stormlog.iteration/p/":             "",
		"stormlog.iteration//1":             "",
		"stormlog.iteration/":               "",
		"Stormlog.iteration/p/1":            "",
		" stormlog.iteration/p/1":           "",
		"":                                  "",
	} {
		ref, ok := ParseIterationName(name)
		got := ref.Producer + "|" + ref.ID
		if !ok {
			got = ""
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}

func TestMatch(t *testing.T) {
	m := Marks{UserPatterns: []Pattern{
		{Producer: "train", Expr: regexp.MustCompile(`^train step (\d+)$`)},
		{Expr: regexp.MustCompile(`^epoch (.*)$`)},
		{Expr: regexp.MustCompile(`^no group$`)},
	}}
	for _, c := range []struct {
		name, producer, id string
		family             Family
		wide               bool
	}{
		{"train step 12", "train", "12", UserPattern, true},
		{"epoch 3", "pattern", "3", UserPattern, true},
		{"epoch ", "", "", NoFamily, false},
		{"no group", "", "", NoFamily, false},
		{"stormlog.iteration/p/1", "p", "1", Stormlog, false},
		{"ProfilerStep#7", "ProfilerStep", "7", ProfilerStep, true},
		{"ProfilerStep#", "", "", NoFamily, false},
		{"ProfilerStep#x", "", "", NoFamily, false},
		{"execute_context_2(9)_generation_0(0)", "vllm", "execute_context_2(9)_generation_0(0)", EngineBatch, true},
		{"execute_context_1(888_788544)_generation_0(0)", "vllm", "execute_context_1(888_788544)_generation_0(0)", EngineBatch, true},
		{"execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk1sqsq32sqsk1)", "vllm", "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk1sqsq32sqsk1)", EngineBatch, true},
		{"execute_model", "", "", NoFamily, false},
		{"execute_diffusion_1_256x256", "xdit", "execute_diffusion_1_256x256", EngineStep, true},
		{"execute_diffusion_", "", "", NoFamily, false},
		{"step[DECODE bs=16]", "sglang", "step[DECODE bs=16]", EngineStep, true},
		{"step[EXTEND bs=15 toks=15360]", "sglang", "step[EXTEND bs=15 toks=15360]", EngineStep, true},
		{"step[0]", "", "", NoFamily, false},
		{"aten::add", "", "", NoFamily, false},
	} {
		got, ok := m.Match(c.name)
		want := Mark{schema.EntityRef{Producer: c.producer, ID: c.id}, c.family, c.wide}
		if got != want || ok != (c.family != NoFamily) {
			t.Errorf("%q: got %+v %v, want %+v", c.name, got, ok, want)
		}
	}
}

func TestChooseFamily(t *testing.T) {
	for _, c := range []struct {
		present []Family
		want    Family
	}{
		{nil, NoFamily},
		{[]Family{ProfilerStep}, ProfilerStep},
		{[]Family{ProfilerStep, EngineStep}, EngineStep},
		{[]Family{EngineStep, EngineBatch}, EngineBatch},
		{[]Family{EngineStep, Stormlog, ProfilerStep}, Stormlog},
		{[]Family{UserPattern, Stormlog}, UserPattern},
	} {
		if got := ChooseFamily(c.present...); got != c.want {
			t.Errorf("ChooseFamily(%v) = %v, want %v", c.present, got, c.want)
		}
	}
}

func TestParseEngineStep(t *testing.T) {
	some, no := schema.Some[int64], schema.Opt[int64]{}
	for name, want := range map[string]*EngineStepInfo{
		"execute_context_2(9)_generation_3(4)":                      {2, 3, some(9), some(4), no},
		"execute_context_1(888_788544)_generation_0(0)":             {1, 0, no, some(0), no},
		"execute_8192_context_9(sq1sk2)_generation_37(sq37sk34489)": {9, 37, no, no, some(8192)},
		"execute_context_2(9)_generation_3(4":                       nil,
		"execute_context_2(9)_generation_3(4)x":                     nil,
		"execute_context_(9)_generation_3(4)":                       nil,
		"execute_context_2_generation_3(4)":                         nil,
		"execute_99999999999999999999_context_2(9)_generation_3(4)": nil,
		"execute_8":  nil,
		"execute_8_": nil,
		"execute_":   nil,
		"":           nil,
	} {
		got, ok := ParseEngineStep(name)
		if ok != (want != nil) || ok && got != *want {
			t.Errorf("%q: got %+v %v, want %+v", name, got, ok, want)
		}
	}
}

func FuzzNames(f *testing.F) {
	for _, s := range []string{
		"stormlog.iteration/p/1", "ProfilerStep#1", "execute_context_1(2)_generation_3(4)",
		"execute_1_context_1(a)_generation_3(b)", "execute_diffusion_1", "step[DECODE bs=1]",
	} {
		f.Add(s)
	}
	var m Marks
	f.Fuzz(func(t *testing.T, name string) {
		if ref, ok := ParseIterationName(name); ok && iterationPrefix+ref.Producer+"/"+ref.ID != name {
			t.Fatalf("%q does not round-trip: %+v", name, ref)
		}
		if s, ok := ParseEngineStep(name); ok && s == (EngineStepInfo{}) && !strings.HasPrefix(name, "execute_") {
			t.Fatalf("%q is a step that says nothing", name)
		}
		mark, ok := m.Match(name)
		if ok && (mark.Ref.Producer == "" || mark.Ref.ID == "" || !strings.HasSuffix(name, mark.Ref.ID)) {
			t.Fatalf("%q: %+v", name, mark)
		}
	})
}
