package main

import (
	"fmt"
	"slices"
	"strings"
)

// Mixes of events.
const (
	serving  = "serving"  // prefill and decode, half of the steps as a graph
	training = "training" // forward, backward, collectives, optimizer; no graphs
	decode   = "decode"   // few operators, then one graph of many kernels
)

var mixes = []string{serving, training, decode}

func (c *config) check() error {
	if c.Mix == "" {
		c.Mix = serving
	}
	if !slices.Contains(mixes, c.Mix) {
		return fmt.Errorf("unknown mix %q: want one of %s", c.Mix, strings.Join(mixes, ", "))
	}
	if c.Layout != "2025" && c.Layout != "2026" {
		return fmt.Errorf("unknown layout %q", c.Layout)
	}
	if c.MB <= 0 && c.Steps <= 0 {
		return fmt.Errorf("give a size or a number of iterations")
	}
	return nil
}

// work is what a step does between its preparation and the copy of its result.
func (s *simulation) work() {
	ops := s.c.StepOps/2 + s.r.IntN(s.c.StepOps)
	switch {
	case s.c.Mix == training:
		s.operators(ops)
		s.ops = backward
		for range 3 { // gradients are reduced as they come
			s.operators(ops / 3)
			s.collective()
		}
		s.ops = optimizer
		s.operators(ops / 4)
		s.ops = operators
	case s.c.Mix == decode:
		s.operators(s.c.StepOps / 10)
		s.replay(s.c.StepOps * 5)
		s.operators(s.c.StepOps / 20)
	case s.chance(600):
		s.operators(ops * 2 / 3)
		s.replay(s.c.StepOps / 2)
		s.operators(ops / 3)
		s.collective()
	default:
		s.operators(ops)
		s.collective()
	}
}

// minify removes the white space between the parts of JSON, in place.
func minify(b []byte) []byte {
	out := b[:0]
	inside := false
	for i, c := range b {
		if c == '"' && (i == 0 || b[i-1] != '\\') { // the generator escapes nothing but quotes
			inside = !inside
		}
		if inside || c != ' ' && c != '\n' {
			out = append(out, c)
		}
	}
	return out
}

// hip is the name of a call of CUDA in ROCm.
func hip(name string) string {
	switch name {
	case "cuLaunchKernelEx":
		return "hipExtModuleLaunchKernel"
	case "cudaMemcpyAsync":
		return "hipMemcpyWithStream"
	case "cudaStreamIsCapturing":
		return "hipStreamIsCapturing"
	}
	return "hip" + strings.TrimPrefix(name, "cuda")
}

// hipCall appends a call as ROCm's profiler writes it: all are calls of the
// runtime, and those that launch name what they launch.
func (s *simulation) hipCall(name string, cid, tid int, start, dur nanos, launches bool) {
	args := []any{"\"External id\": ", s.external, ",          "}
	if launches && strings.Contains(name, "Launch") {
		args = append(args, "\"kernel\": \"", pick(s, hipKernels), "\", ")
	}
	args = append(args, "\"cid\": ", cid, ", \"correlation\": ", s.correlation)
	if launches {
		args = append(args, ",      \"stream\": \"0x0\",      \"grid\": [", 1+s.r.IntN(2047), ", 1, 1],      \"block\": [256, 1, 1],      \"shared memory\": 0")
	}
	s.gpu.complete("cuda_runtime", hip(name), processID, tid, start, dur, args...)
}

// hipWork appends GPU work as ROCm's profiler writes it.
func (s *simulation) hipWork(cat, name, kind string, correlation int64, stream int, start, dur nanos, more ...any) {
	args := append([]any{
		"\"External id\": ", s.external, ",      \"device\": ", s.c.Rank, ", \"stream\": ", stream,
		",      \"correlation\": ", correlation, ", \"kind\": \"", kind, "\"",
	}, more...)
	s.gpu.complete(cat, name, s.c.Rank, stream, start, dur, args...)
}

// hipHeader turns a header into that of an AMD machine.
var hipHeader = strings.NewReplacer(
	"NVIDIA H100 80GB HBM3", "AMD Instinct MI300X", "84942979072", "205822885888", "\"warpSize\": 32", "\"warpSize\": 64", "\"numSms\": 132", "\"numSms\": 304",
	"\"computeMinor\": 0", "\"computeMinor\": 4", "\"sharedMemPerBlock\": 49152", "\"sharedMemPerBlock\": 65536",
	"\"cupti_version\": 26,\n  \"cuda_runtime_version\": 12090,\n  \"cuda_driver_version\": 12090", "\"hip_runtime_version\": 60443484,\n  \"hip_driver_version\": 60443484",
)

var (
	backward = []string{
		"autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0", "autograd::engine::evaluate_function: MmBackward0", "MmBackward0",
		"autograd::engine::evaluate_function: NativeLayerNormBackward0", "NativeLayerNormBackward0", "aten::native_layer_norm_backward",
		"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "torch::autograd::AccumulateGrad", "aten::mm", "aten::sum", "aten::add_",
		"aten::_scaled_dot_product_flash_attention_backward", "aten::gelu_backward", "aten::embedding_dense_backward", "aten::detach",
	}
	optimizer = []string{
		"Optimizer.step#AdamW.step", "aten::_foreach_add_", "aten::_foreach_mul_", "aten::_foreach_addcdiv_", "aten::_foreach_sqrt", "aten::_fused_adamw_",
		"Optimizer.zero_grad#AdamW.zero_grad", "aten::zero_",
	}
	hipKernels = []string{
		"Cijk_Alik_Bljk_BBS_BH_Bias_AS_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1_CADS0_EPS0_GRVWA8_GRVWB8_ISA942_LBSPPA512_LBSPPB512_MIAV0_MIWT4_4_WS64_WG64_4_1",
		"void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const> >(int, at::TensorIteratorBase&)",
		"void engine::paged_attention_ll4mi_QKV_mfma16_kernel<__hip_bfloat16, __hip_bfloat16, 0, 16, 128, 256>(__hip_bfloat16 const*, int, float)",
		"triton_poi_fused_add_native_layer_norm_2.kd", "ck_tile::kentry<ck_tile::FmhaFwdKernel<ck_tile::TileFmhaShape<128, 64, 32> > >", "_ZN5aiter7rmsnormI14__hip_bfloat16EEvPT_.kd",
	}
)
