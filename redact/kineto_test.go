package redact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// rewrite returns the copy of a trace.
func rewrite(t testing.TB, o Options, text string) string {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Kineto(p, strings.NewReader(text), &out); err != nil {
		t.Fatalf("%v\n%.300s", err, text)
	}
	return out.String()
}

// planted is a trace with a secret wherever a text, a key or a number of no
// known meaning can stand.
const planted = `{"schemaVersion": 1, "host_name": "zulu-host.zulu.example", "zulu_job": {"zulu": ["zulu", 7777123, {"zulu_k": "zulu"}]},
 "PT_PROFILER_JOB_NAME": "zulu", "trace_id": "ABCDEF0123456789ABCDEF01234zulu", "vllm_version": "0.9.1.dev3+gzulu", "displayTimeUnit": "zulu",
 "deviceProperties": [{"id": 0, "name": "zulu", "uuid": "zulu-uuid", "zulu": "zulu"}], "tracelake_slice": {"trace_id": "zulu", "zulu": 1},
 "distributedInfo": {"backend": "zulu", "rank": 3, "world_size": 8, "pg_config": [{"pg_name": "zulu", "pg_desc": "zulu", "ranks": "[0, zulu]", "zulu": 7777123}]},
 "traceEvents": [
 {"ph": "X", "cat": "kernel", "name": "void zulu::zulu_kernel<float, zuluFunctor>(float*)", "pid": 0, "tid": 7, "ts": 10.001, "dur": 5.250, "args": {"device": 0, "stream": 7, "correlation": 1, "zulu": "zulu", "zulu2": 7777123, "dtype": "zulu", "nested": {"zulu": ["zulu"]}}},
 {"ph": "X", "cat": "cuda_runtime", "name": "zuluLaunch", "pid": 991, "tid": 992, "ts": 9, "dur": 1, "args": {"correlation": 1, "kernel": "zulu_k", "ptr": "zulu"}},
 {"ph": "X", "cat": "cpu_op", "name": "zulu::op", "pid": "zulu", "tid": "thread zulu", "ts": 1, "dur": 1, "args": {"External id": 1, "Input Dims": [["zulu"], [1, 2]], "Input type": ["zulu", "float"], "Concrete Inputs": ["zulu", "[1, 2]"], "Call stack": "/home/zulu/x.py(12): zulu;torch_zulu/module.py(3): zulu", "Module Hierarchy": "zulu.Zulu", "kernel_file": "/zulu/f.py"}},
 {"ph": "X", "cat": "python_function", "name": "/home/zulu/train.py(77): zulu_step", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "args": {"Python id": 5}},
 {"ph": "X", "cat": "python_function", "name": "<built-in method zulu of zulu.Zulu object at 0x7f0000000000>", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "python_function", "name": "nn.Module: Zulu_0", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "user_annotation", "name": "zulu annotation", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "zulu": "zulu", "zulu3": 7777123},
 {"ph": "X", "cat": "user_annotation", "name": "stormlog.iteration/zulu/zulu-5", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "user_annotation", "name": "execute_diffusion_zulu", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "user_annotation", "name": "step[ZULU bs=4 zulu]", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "zulu_runtime", "name": "zulu", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "zulu", "name": "autograd::engine::evaluate_function: ZuluBackward", "pid": 1, "tid": 1, "ts": 1, "dur": 1},
 {"ph": "X", "cat": "cpu_op", "n\u0061me": "nccl:zulu", "name": "\u007aulu", "pid": 1, "tid": 1, "ts": "1", "dur": 1, "name": {"zulu": "zulu"}},
 {"ph": "i", "s": "zulu", "name": "zulu", "pid": 1, "tid": 1, "ts": 1},
 {"ph": "s", "id": "zulu", "cat": "ac2g", "name": "zulu", "bp": "zulu", "pid": 1, "tid": 1, "ts": 1},
 {"ph": "C", "name": "zulu", "pid": 1, "ts": 1, "args": {"zulu": 12, "bytes": "zulu"}},
 {"ph": "M", "name": "process_name", "pid": 991, "args": {"name": "zulu --password=zulu"}},
 {"ph": "M", "name": "thread_name", "pid": 991, "tid": 992, "args": {"name": "thread 992 (zulu)", "zulu": "zulu"}},
 {"ph": "M", "name": "zulu", "pid": 991, "args": {"labels": "zulu"}},
 {"ph": "zulu", "name": "x", "args": "zulu"}, "zulu", ["zulu", 7777123], 7777123
 ], "traceName": "/home/zulu/trace.json"}`

func TestSecretsGo(t *testing.T) {
	for _, names := range []Names{PrivateNames, AllNames} {
		out := rewrite(t, Options{Names: names}, planted)
		if !json.Valid([]byte(out)) {
			t.Fatalf("not JSON: %s", out)
		}
		for _, secret := range []string{"zulu", "7777123", "abcdef0123"} {
			for line := range strings.Lines(out) {
				if strings.Contains(strings.ToLower(line), secret) {
					t.Errorf("%s: %s is left: %s", names, secret, line)
				}
			}
		}
		for _, stays := range []string{`"ts": 10.001, "dur": 5.250`, `"correlation": 1`, `"rank": 3, "world_size": 8`, `[1, 2]`} {
			if !strings.Contains(out, stays) {
				t.Errorf("%s: %s is gone", names, stays)
			}
		}
	}
}

func TestPublicNamesStay(t *testing.T) {
	for _, c := range []struct{ cat, name, want string }{
		{"cpu_op", "aten::mm", ""},
		{"cpu_op", "AddmmBackward0", ""},
		{"cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", ""},
		{"cpu_op", "Optimizer.step#Adam.step", ""},
		{"user_annotation", "ProfilerStep#12", ""},
		{"user_annotation", "execute_context_1(888_788544)_generation_0(0)", ""},
		{"user_annotation", "step[DECODE bs=16]", ""},
		{"user_annotation", "nccl:_all_gather_base", ""},
		{"user_annotation", "my model", "redacted_name_"},
		{"kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", ""},
		{"kernel", "ampere_sgemm_128x64_tn", ""},
		{"kernel", "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)", ""},
		{"kernel", "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>()", ""},
		{"kernel", "void at::native::vectorized_elementwise_kernel<4, acme_rescale(float)>", "void at::native::vectorized_elementwise_kernel<4, redacted_identifier_"},
		{"cpu_op", "flash_attn::_flash_attn_forward", ""},
		{"cpu_op", "vllm::unified_attention_with_output", ""},
		{"cpu_op", "vllm::acme_rescale", "redacted_name_"},
		{"gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", ""},
		{"gpu_memcpy", "Memcpy DtoH (Device -> Host)", ""},
		{"gpu_memset", "Memset (Host)", ""},
		{"cuda_runtime", "cudaLaunchKernel", ""},
		{"cuda_runtime", "hipExtModuleLaunchKernel", ""},
		{"cuda_driver", "cuLaunchKernelEx", ""},
		{"python_function", "torch/nn/modules/module.py(1501): _call_impl", ""},
		{"python_function", "<built-in function len>", ""},
		{"python_function", "nn.Module: Linear_3", ""},
		{"python_function", "acme/model.py(10): forward", "redacted_path_"},
		{"python_function", "nn.Module: AcmeBlock_3", "nn.Module: redacted_module_"},
	} {
		event := fmt.Sprintf(`[{"ph":"X","cat":%q,"name":%q,"pid":1,"tid":1,"ts":1,"dur":1}]`, c.cat, c.name)
		out := rewrite(t, Options{}, event)
		var got []struct{ Name string }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if c.want == "" && got[0].Name != c.name || c.want != "" && !strings.HasPrefix(got[0].Name, c.want) {
			t.Errorf("%s became %s", c.name, got[0].Name)
		}
	}
}

// TestProducts: names of GPUs stay, and nothing else that begins like one.
func TestProducts(t *testing.T) {
	for name, stays := range map[string]bool{
		"": true, "NVIDIA H100 80GB HBM3": true, "NVIDIA A100-SXM4-40GB MIG 1g.5gb": true, "Tesla P100-PCIE-16GB": true, "NVIDIA GH200 480GB": true,
		"NVIDIA RTX PRO 6000 Blackwell Server Edition": true, "NVIDIA GeForce RTX 4090 Laptop GPU": true, "AMD Instinct MI300X OAM": true,
		"AMD Radeon Graphics": true, "Intel(R) Data Center GPU Max 1550": true, "NVIDIA H20-3e": true, "GRID T4-16Q": true, "NVIDIA GB10": true,
		"NVIDIA Graphics Device": true, "NVIDIA L40S": true, "Quadro RTX 8000": true, "NVIDIA TITAN V": true,
		"NVIDIA of Alice": false, "NVIDIA H100 secret cluster": false, "AMD project-falcon": false, "H100": false, "NVIDIA /home/alice": false,
	} {
		out := rewrite(t, Options{}, fmt.Sprintf(`{"deviceProperties":[{"id":0,"name":%q}],"traceEvents":[]}`, name))
		var got struct{ DeviceProperties []struct{ Name string } }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if (got.DeviceProperties[0].Name == name) != stays {
			t.Errorf("%s became %s", name, got.DeviceProperties[0].Name)
		}
	}
}

// TestWhatAnalysesKnow: the copy kinds and the operators that analyses know by
// name are in a copy as they were.
func TestWhatAnalysesKnow(t *testing.T) {
	sql, err := os.ReadFile("../analyze/query/sql/roofline.sql")
	if err != nil {
		t.Fatal(err)
	}
	ops := regexp.MustCompile(`\('(\w+::\w+)', '(?:product|sum|linear|attention|convolution)`).FindAllSubmatch(sql, -1)
	if len(ops) < 20 {
		t.Fatalf("%d operators", len(ops))
	}
	for _, op := range ops {
		event := fmt.Sprintf(`[{"ph":"X","cat":"cpu_op","name":%q,"pid":1,"tid":1,"ts":1,"dur":1}]`, op[1])
		if out := rewrite(t, Options{}, event); !strings.Contains(out, string(op[1])) {
			t.Errorf("%s became %s", op[1], out)
		}
	}
	for _, kind := range []string{"HtoD", "DtoH", "DtoD", "HtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "PtoP"} {
		event := fmt.Sprintf(`[{"ph":"X","cat":"gpu_memcpy","name":"x","pid":1,"tid":1,"ts":1,"dur":1,"args":{"kind":%q}}]`, kind)
		if out := rewrite(t, Options{}, event); !strings.Contains(out, `"`+kind+`"`) {
			t.Errorf("%s became %s", kind, out)
		}
	}
}

func TestOptions(t *testing.T) {
	event := func(name string) string {
		return fmt.Sprintf(`[{"ph":"X","cat":"cpu_op","name":%q,"pid":4711,"tid":4711,"ts":1,"dur":1,"args":{"Fwd thread id":0}},{"ph":"X","cat":"kernel","name":"k","pid":3,"tid":7,"ts":2,"dur":1}]`, name)
	}
	if out := rewrite(t, Options{Keep: regexp.MustCompile(`^acme::`)}, event("acme::op")); !strings.Contains(out, "acme::op") {
		t.Error(out)
	}
	a, b := rewrite(t, Options{Key: "k"}, event("acme")), rewrite(t, Options{Key: "k"}, event("acme"))
	if a != b || a == rewrite(t, Options{Key: "other"}, event("acme")) || a == rewrite(t, Options{}, event("acme")) {
		t.Error("placeholders do not depend on the key alone")
	}
	none := rewrite(t, Options{Names: NoNames}, event("acme at /home/me/x.py, me@acme.example, https://acme.example/a?b=c, 10.1.2.3, 123e4567-e89b-12d3-a456-426614174000, hf_abcdefghijkl"))
	for _, gone := range []string{"/home", "@acme", "https:", "10.1.2.3", "e89b", "hf_abc"} {
		if strings.Contains(none, gone) {
			t.Errorf("%s is left: %s", gone, none)
		}
	}
	if !strings.Contains(none, "acme at ") {
		t.Error(none)
	}
	if all := rewrite(t, Options{Names: AllNames}, event("aten::mm")); strings.Contains(all, "aten") {
		t.Error(all)
	}
	pids := rewrite(t, Options{PIDs: true}, event("acme"))
	m := regexp.MustCompile(`"pid":(\d+),"tid":(\d+)`).FindAllStringSubmatch(pids, -1)
	if strings.Contains(pids, "4711") || m[0][1] != m[0][2] || m[1][1] != "3" || m[1][2] != "7" {
		t.Error(pids)
	}
	if _, err := New(Options{Names: "some"}); err == nil {
		t.Error("names some")
	}
}

// traces returns real traces as texts.
func traces(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../testdata/demo/*/*.json.gz")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d traces, %v", len(files), err)
	}
	out := map[string]string{}
	for _, f := range files {
		in, err := os.Open(f)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Open(in)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = in.Close()
		out[f] = string(b)
	}
	return out
}

var quotedText = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// TestOnlyTexts checks that nothing but texts changes in real traces, and that
// a second run changes nothing at all.
func TestOnlyTexts(t *testing.T) {
	for f, text := range traces(t) {
		once := rewrite(t, Options{}, text)
		if once == text {
			t.Errorf("%s: nothing was replaced", f)
		}
		bare := func(s string) string { return quotedText.ReplaceAllString(s, `""`) }
		a, b := bare(text), bare(once)
		if a != b {
			i := 0
			for i < min(len(a), len(b)) && a[i] == b[i] {
				i++
			}
			t.Errorf("%s: other bytes changed: %.120q, was %.120q", f, b[max(0, i-60):], a[max(0, i-60):])
		}
		if twice := rewrite(t, Options{}, once); twice != once {
			t.Errorf("%s: a second run changes the copy", f)
		}
	}
	if once := rewrite(t, Options{}, planted); rewrite(t, Options{}, once) != once {
		t.Error("a second run changes the copy of the planted trace")
	}
}

func TestBroken(t *testing.T) {
	for text, want := range map[string]string{
		``:                                      "ends early",
		`{}`:                                    "without a traceEvents",
		`{"a": 1}`:                              "without a traceEvents",
		`"text"`:                                "no trace",
		`{"traceEvents": [`:                     "ends early",
		`{"traceEvents": [{"name": "x`:          "ends early",
		`{"traceEvents": [{"a": 1} {}]}`:        "comma",
		`{"traceEvents": [{"a": 1,}]}`:          "key is missing",
		`{"traceEvents": [{"a" 1}]}`:            "colon",
		`{"traceEvents": [{"a": zulu}]}`:        "not JSON",
		`{"traceEvents": []} {}`:                "more text",
		`{"traceEvents": [{"a": "x` + "\n\"}]}": "control character",
		`{"traceEvents": [{"a": "\x"}]}`:        "not JSON",
		`{"traceEvents": [{"a": [1}]}]}`:        "",
		`[` + strings.Repeat("[", 2000) + strings.Repeat("]", 2000) + `]`: "nested",
		`{zulu: 1, "traceEvents": []}`:                                    "key is missing",
	} {
		p, _ := New(Options{})
		err := Kineto(p, strings.NewReader(text), io.Discard)
		var syntax *SyntaxError
		if !errors.As(err, &syntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
		if err != nil && strings.Contains(err.Error(), "zulu") {
			t.Errorf("the error quotes the trace: %v", err)
		}
	}
}

// FuzzKineto checks that whatever is copied is JSON, has lost its secrets and
// kept its numbers of known meaning.
func FuzzKineto(f *testing.F) {
	f.Add([]byte(planted))
	f.Add([]byte(`[{"ph":"X","cat":"kernel","name":"zulu","ts":1.5,"dur":2,"pid":0,"tid":7,"args":{"stream":7}}]`))
	f.Add([]byte(`{"traceEvents":[{"ts":1e3,"name":"\ud800zulu","args":{"":null}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := New(Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if Kineto(p, bytes.NewReader(text), &out) != nil {
			return
		}
		clean := !json.Valid(text) // NaN and the like
		if !clean && !json.Valid(out.Bytes()) {
			t.Fatalf("not JSON: %q from %q", out.Bytes(), text)
		}
		if bytes.Contains(bytes.ToLower(out.Bytes()), []byte("zulu")) {
			t.Fatalf("a secret is left: %q from %q", out.Bytes(), text)
		}
		if a, b := times(text), times(out.Bytes()); a != b {
			t.Fatalf("times %s became %s", a, b)
		}
	})
}

// times lists the times of the events of a trace.
func times(text []byte) string {
	var doc struct {
		TraceEvents []json.RawMessage `json:"traceEvents"`
	}
	list := &doc.TraceEvents
	if json.Unmarshal(text, &doc) != nil && json.Unmarshal(text, list) != nil {
		return ""
	}
	var b strings.Builder
	for _, e := range *list {
		var m map[string]json.RawMessage
		if json.Unmarshal(e, &m) != nil || m == nil {
			continue
		}
		for _, k := range []string{"ts", "dur"} {
			if v := m[k]; len(v) > 0 && (v[0] == '-' || v[0] >= '0' && v[0] <= '9') {
				fmt.Fprintf(&b, "%s ", v)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
