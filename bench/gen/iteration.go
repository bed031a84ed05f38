package main

import "fmt"

// iteration simulates one step: it prepares, works, and copies the result back.
func (s *simulation) iteration() {
	s.step++
	start := s.now
	s.function(start+200, 900_000)
	s.now += 1500
	s.work()
	c := s.call("cuda_runtime", "cudaMemcpyAsync", 41, mainThread, s.now, 4000, true)
	s.busy = max(s.busy+800, s.now+4100)
	s.copyWork("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", c, computeStream, s.busy, 1500, 0)
	s.busy += 1500
	s.now += 6000
	wait := max(s.busy-s.now, 1000)
	c = s.call("cuda_runtime", "cudaStreamSynchronize", 131, mainThread, s.now, wait, false)
	s.gpu.complete("cuda_sync", "Stream Sync", s.c.Rank, computeStream, s.now, wait,
		"\"cuda_sync_kind\": \"Stream Sync\",\"stream\": ", computeStream, ",\"correlation\": ", c, ",\"device\": ", s.c.Rank, ",\"context\": 1")
	s.now = max(s.now+wait, s.busy) + 4000
	s.annotate(start, s.now-start)
	if s.chance(300) {
		s.helper(start + 5000)
	}
	s.now += s.between(2000, 90_000)
	if s.chance(200) {
		// Between two steps, outside any range.
		c := s.call("cuda_runtime", "cudaMemsetAsync", 51, mainThread, s.now, 900, true)
		s.busy = max(s.busy, s.now+1500)
		s.copyWork("gpu_memset", "Memset (Device)", c, computeStream, s.busy, 1000, 0)
		s.busy += 1000
		s.now += 4000
	}
}

// annotate writes the ranges of a step, on the CPU and as projected onto the
// GPU.
func (s *simulation) annotate(start, dur nanos) {
	mark := fmt.Sprintf("stormlog.iteration/node-%d-3f2c:%d:17/%d", s.c.Rank/8, processID, s.step)
	engine := fmt.Sprintf("execute_context_%d(%d)_generation_%d(%d)", s.r.IntN(8), s.r.IntN(2048), s.r.IntN(64), s.r.IntN(64))
	step := fmt.Sprintf("ProfilerStep#%d", s.step)
	for i, name := range []string{step, mark, engine} {
		inset := nanos(i) * 100
		s.cpu.complete("user_annotation", name, processID, mainThread, start+inset, dur-2*inset,
			"\"External id\": ", s.external, ",\"Record function id\": 0, \"Ev Idx\": ", s.external)
	}
	s.late.complete("gpu_user_annotation", mark, s.c.Rank, computeStream, start+4000, dur, "\"External id\": ", s.external)
	if s.chance(50) {
		s.late.complete("overhead", "Activity Buffer Request", -1, 0, start, 350_000)
	}
}

// operators runs n operators one after another, with what they call and
// launch.
func (s *simulation) operators(n int) {
	for range n {
		t, dur := s.now, s.between(9000, 60_000)
		s.function(t, dur+900)
		if s.chance(700) {
			s.function(t+150, dur+500)
		}
		s.operator(pick(s, s.ops), mainThread, t+300, dur)
		if s.chance(400) {
			s.operator(pick(s, s.ops), mainThread, t+700, dur-2000)
		}
		if s.chance(450) {
			s.memory(t + 900)
		}
		if s.chance(30) {
			s.arrow++
			s.cpu.flow("s", "fwdbwd", s.arrow, processID, mainThread, t+300)
			s.cpu.flow("f", "fwdbwd", s.arrow, processID, mainThread, t+dur-100)
		}
		if s.chance(450) {
			q := pick(s, quietCalls)
			s.call("cuda_runtime", q.name, q.cbid, mainThread, t+1000, 400+nanos(s.r.IntN(600)), false)
		}
		s.launch(t + 2200)
		s.now = t + dur + 1500
	}
}

// launch starts one piece of GPU work, most often a kernel.
func (s *simulation) launch(t nanos) {
	switch k := s.r.IntN(100); {
	case k < 52:
		cat, name, cbid := "cuda_runtime", "cudaLaunchKernel", 211
		if s.chance(300) {
			cat, name, cbid = "cuda_driver", "cuLaunchKernelEx", 652
		}
		c := s.call(cat, name, cbid, mainThread, t, 2500+nanos(s.r.IntN(3000)), true)
		s.busy = max(s.busy+nanos(s.r.IntN(1300)), t+2600)
		dur := s.between(900, 120_000)
		if s.chance(50) {
			s.kernel(pick(s, kernels), c, sideStream, max(s.busy-1500, t+100), dur, 0, "")
			return
		}
		s.kernel(pick(s, kernels), c, computeStream, s.busy, dur, 0, "")
		s.busy += dur
	case k < 56:
		c := s.call("cuda_runtime", "cudaMemcpyAsync", 41, mainThread, t, 3000, true)
		s.busy = max(s.busy+700, t+3800)
		s.copyWork("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", c, computeStream, s.busy, 1200+nanos(s.r.IntN(4000)), 0)
		s.busy += 6000
	case k < 58:
		c := s.call("cuda_runtime", "cudaMemsetAsync", 51, mainThread, t, 2500, true)
		s.busy = max(s.busy+700, t+3000)
		s.copyWork("gpu_memset", "Memset (Device)", c, computeStream, s.busy, 900+nanos(s.r.IntN(800)), 0)
		s.busy += 2000
	}
}

// replay launches a CUDA graph: one call, many kernels.
func (s *simulation) replay(n int) {
	c := s.call("cuda_runtime", "cudaGraphLaunch", 311, mainThread, s.now, 60_000, true)
	s.now += 61_000
	s.busy = max(s.busy+2000, s.now-40_000)
	graph := int64(3 + 2*s.r.IntN(8))
	for i := range n/2 + s.r.IntN(n+1) {
		if i%97 == 96 {
			s.copyWork("gpu_memset", "Memset (Device)", c, computeStream, s.busy, 1100, graph)
			s.busy += 1100
		}
		dur := s.between(900, 60_000)
		s.kernel(pick(s, kernels), c, computeStream, s.busy, dur, graph, "")
		s.busy += dur + nanos(s.r.IntN(3)*320)
	}
}

// collective reduces over all ranks, beside the work of the compute stream.
func (s *simulation) collective() {
	s.seq++
	elements := 1 << (10 + s.r.IntN(12))
	s.external++
	args := fmt.Sprintf("\"Collective name\": \"allreduce\", \"In msg nelems\": %d, \"Out msg nelems\": %d, \"Group size\": %d, \"dtype\": \"BFloat16\", "+
		"\"In split size\": \"[]\", \"Out split size\": \"[]\", \"Process Group Name\": \"0\", \"Process Group Description\": \"default_pg\", "+
		"\"Process Group Ranks\": \"%s\", \"Seq\": %d", elements, elements, s.c.World, rankList(s.c.World), s.seq)
	s.cpu.complete("cpu_op", "record_param_comms", processID, mainThread, s.now, 30_000,
		"\"External id\": ", s.external, ",\"Record function id\": 0, ", args, ", \"Rank\": ", s.c.Rank, ", \"Ev Idx\": ", s.external-1)
	c := s.call("cuda_driver", "cuLaunchKernelEx", 652, mainThread, s.now+4000, 9000, true)
	s.comm = max(s.comm+500, s.now+16_000)
	dur := s.between(9000, 400_000)
	s.kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", c, commStream, s.comm, dur, 0, ", "+args)
	s.comm += dur
	s.now += 32_000
}

// helper copies on a thread that has no ranges.
func (s *simulation) helper(t nanos) {
	s.operator("aten::copy_", helperThread, t, 9000)
	c := s.call("cuda_runtime", "cudaMemcpyAsync", 41, helperThread, t+1000, 3000, true)
	s.copyWork("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", c, helperStream, t+4500, 2200, 0)
}

func rankList(world int) string {
	list := "["
	for i := range world {
		if i > 0 {
			list += ", "
		}
		if i == 8 {
			return list + "...]" // PyTorch shortens long lists as well
		}
		list += fmt.Sprint(i)
	}
	return list + "]"
}
