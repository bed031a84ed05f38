package main

// What a large model serves requests with: names as profilers write them.
var (
	operators = []string{
		"aten::linear", "aten::mm", "aten::addmm", "aten::matmul", "aten::empty", "aten::empty_strided", "aten::view",
		"aten::reshape", "aten::as_strided", "aten::slice", "aten::select", "aten::copy_", "aten::to", "aten::_to_copy",
		"aten::add", "aten::mul", "aten::silu", "aten::softmax", "aten::_softmax", "aten::index_select", "aten::index",
		"aten::argmax", "aten::cat", "aten::zero_", "aten::fill_", "aten::transpose", "aten::t", "aten::unsqueeze",
		"aten::expand", "aten::contiguous", "aten::clone", "_C::rms_norm", "_C::fused_add_rms_norm", "_C::silu_and_mul",
		"_C::rotary_embedding", "_C_cache_ops::reshape_and_cache_flash", "engine::unified_attention_with_output",
		"autograd::engine::evaluate_function: AddmmBackward0", "AddmmBackward0",
	}
	functions = []string{
		"engine/worker/model_runner.py(2310): execute_model", "engine/worker/model_runner.py(1189): _prepare_inputs",
		"torch/nn/modules/module.py(1773): _wrapped_call_impl", "torch/nn/modules/module.py(1784): _call_impl",
		"engine/models/llama.py(212): forward", "engine/models/llama.py(138): forward", "engine/layers/linear.py(1204): forward",
		"engine/layers/layernorm.py(96): forward", "engine/layers/rotary.py(150): forward", "engine/attention/layer.py(230): forward",
		"torch/_ops.py(1243): __call__", "<built-in method linear of type object at 0x7f1c2e5b8a60>", "<built-in function len>",
		"<built-in method append of list object at 0x7f1b0c04d2c0>", "nn.Module: LlamaDecoderLayer_17",
		"nn.Module: QKVParallelLinear_17", "nn.Module: RMSNorm_35", "nn.Module: SiluAndMul_0",
		"engine/sample/sampler.py(71): forward", "engine/core/scheduler.py(191): schedule", "threading.py(1012): run",
	}
	kernels = []string{
		"ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_64x3_tn",
		"nvjet_tst_192x192_64x4_2x1_v_bz_coopB_TNT",
		"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_bias_execute_segment_k_off_kernel__5x_cublas",
		"void engine::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*, c10::BFloat16 const*, long, c10::BFloat16 const*, float, int, int)",
		"void engine::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 engine::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)",
		"void engine::rotary_embedding_kernel<c10::BFloat16, true>(long const*, c10::BFloat16*, c10::BFloat16*, c10::BFloat16 const*, int, long, long, long, int, int, int)",
		"void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2, cute::tuple<cute::C<1>, cute::C<1>, cute::C<1> >, cute::tuple<cute::C<128>, cute::C<176>, cute::C<128> >, 128, cutlass::bfloat16_t, float, cutlass::arch::Sm90, true, false, false, true, true, false, true, false, false, true, true, false> > > >",
		"void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)",
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4> >(at::native::ReduceOp<float, at::native::ArgMaxOps<float>, unsigned int, long, 4, 4>)",
		"triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0", "triton_poi_fused_mul_silu_1", "_topk_topp_kernel",
		"void (anonymous namespace)::softmax_warp_forward<float, float, float, 9, false, false>",
	}
	// quietCalls launch nothing.
	quietCalls = []struct {
		name string
		cbid int
	}{{"cudaStreamIsCapturing", 317}, {"cudaEventRecord", 135}, {"cudaEventQuery", 139}, {"cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 251}}
	widths  = []int{896, 1024, 3584, 4096, 4864, 18944}
	threads = []int{32, 128, 256, 384, 512, 1024}
	banks   = []int{0, 1024, 49152, 232448}
	regs    = []int{32, 40, 64, 128, 168, 255}
)
