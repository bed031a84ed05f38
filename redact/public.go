package redact

import (
	_ "embed"
	"strings"
)

//go:embed words.txt
var wordList string

// words are parts of the names of public kernels and operators.
var words = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(wordList) {
		out[w] = true
	}
	return out
}()

var (
	identifier = pattern(`[A-Za-z_][A-Za-z_0-9]*`)
	subword    = pattern(`[A-Z]+[a-z]*|[a-z]+`)
	wordText   = pattern(`^[\w\s:;,.<>()\[\]*&#/=+{}~!|-]*$`)
)

// publicIdentifier tells whether an identifier consists of public words.
func publicIdentifier(s string) bool {
	for _, w := range subword().FindAllString(s, -1) {
		if !words[strings.ToLower(w)] && !camel(w) {
			return false
		}
	}
	return true
}

// camel splits a word such as GEMMKernel, of which the last capital belongs to
// the second part.
func camel(w string) bool {
	n := 0
	for n < len(w) && w[n] >= 'A' && w[n] <= 'Z' {
		n++
	}
	if n < 2 || n == len(w) {
		return false
	}
	return words[strings.ToLower(w[:n-1])] && words[strings.ToLower(w[n-1:])]
}

// publicWords tells whether all identifiers of a text are public.
func publicWords(s string) bool {
	if !wordText().MatchString(s) || ipOnly().MatchString(s) {
		return false
	}
	for _, w := range identifier().FindAllString(s, -1) {
		if !publicIdentifier(w) {
			return false
		}
	}
	return true
}

// kernel replaces the identifiers in the name of a kernel that are not public.
func (p *Policy) kernel(text string) string {
	if p.o.Names != PrivateNames || p.o.Keep != nil && p.o.Keep.MatchString(text) || marks().MatchString(text) {
		return p.name(kindName, text, false)
	}
	if !kernelText().MatchString(text) {
		return p.replace(kindName, text)
	}
	return identifier().ReplaceAllStringFunc(text, func(s string) string {
		if publicIdentifier(s) {
			return s
		}
		return p.replace(kindIdent, s)
	})
}

// kernelText matches texts that can be the name of a kernel: what stands
// between its identifiers says nothing.
var kernelText = pattern(`^[\w\s:;,.<>()\[\]*&#/=+{}~!?|$-]*$`)

// Operators of PyTorch and of libraries that everybody can read.
var (
	publicOp = pattern(`^(aten|prim|prims|quantized|torchvision|_?c10d(_functional)?|fbgemm|mkldnn|mkl|symm_mem|inductor|torch|torch::autograd|torch::dynamo|autograd::engine|profiler|onednn)::[\w.:]+$`)
	// Libraries of which people keep copies with operators of their own.
	forkedOp = pattern(`^(flash_attn(_[23])?|_?vllm(_\w+)?|sgl_kernel|sglang|xformers|triton|torchao|flashinfer|transformer_engine|bitsandbytes|deepspeed|aiter|apex)::[\w.:]+$`)
	// Nodes that PyTorch generates end with a digit; a class of a user does not.
	publicNode = pattern(`^[A-Z][A-Za-z0-9]*Backward\d$`)
	evaluate   = pattern(`^(autograd::engine::evaluate_function: )(.*)$`)
	optimizer  = pattern(`^(Optimizer\.(?:step|zero_grad)#)(Adadelta|Adagrad|Adam|AdamW|Adamax|ASGD|LBFGS|Muon|NAdam|RAdam|RMSprop|Rprop|SGD|SparseAdam)(\.(?:step|zero_grad))$`)
	publicNote = pattern(`^(PyTorch Profiler( \(\d+\))?|Iteration Start: PyTorch Profiler|Record Window End|nccl:\w+|gloo:\w+|record_param_comms|\[memory\]|\[OutOfMemory\]|\[pl\]\w+|DataParallel\.forward|DistributedDataParallel\.forward|CompiledFunction(Backward)?|Torch-Compiled Region(: [\d/]+)?|TorchDynamo Cache Lookup|Pregraph bytecode|AOTDispatcher Runtime Wrapper Prologue|detach_?|cudaEvent|(Stream|Event|Context) (Sync|Synchronize|synchronize)|Stream (Wait Event|wait event))$`)
	apiName    = pattern(`^_*(cuda|cu|hip|hsa|nccl|rccl|ur|ze|pti|cudnn|cublas)[A-Z][A-Za-z0-9]*(_[A-Za-z0-9]+)*$`)
)

// operator decides about the name of an operator or annotation.
func (p *Policy) operator(text string) string {
	if m := evaluate().FindStringSubmatch(text); m != nil && p.o.Names == PrivateNames {
		return m[1] + p.operator(m[2])
	}
	public := publicOp().MatchString(text) || forkedOp().MatchString(text) && publicWords(text) || publicNode().MatchString(text) || optimizer().MatchString(text) || publicNote().MatchString(text) && publicWordsOf(text)
	return p.name(kindName, text, public)
}

// publicWordsOf looks into names whose second half is free.
func publicWordsOf(text string) bool {
	for _, prefix := range []string{"nccl:", "gloo:", "[pl]"} {
		if rest, ok := strings.CutPrefix(text, prefix); ok {
			return publicWords(rest)
		}
	}
	return true
}

// api decides about the name of a call of the runtime or driver.
func (p *Policy) api(text string) string {
	return p.name(kindName, text, apiName().MatchString(text))
}

// Python frames as the profiler names them.
var (
	frame     = pattern(`^(.*)\((\d+)\): (.*)$`)
	module    = pattern(`^(nn\.Module: )(.*?)(_\d+)?$`)
	builtin   = pattern(`^<built-in (function|method) (\S+?)( of (\S+) object at 0x[0-9a-fA-F]+)?>$`)
	publicPy  = pattern(`^((torch|torchvision|torchaudio|transformers|vllm|sglang|diffusers|accelerate|triton|numpy|einops|flash_attn|xformers|deepspeed|megatron|apex|safetensors|tokenizers)/[\w/.-]+\.py|<(frozen [\w.]+|string)>|(abc|asyncio|collections|concurrent|contextlib|copy|ctypes|dataclasses|enum|functools|importlib|inspect|itertools|json|logging|multiprocessing|os|queue|random|re|threading|time|typing|warnings|weakref)(/[\w/]+|)\.py)$`)
	pyName    = pattern(`^(<\w+>|\w+)$`)
	publicNN  = pattern(`^(AdaptiveAvgPool[123]d|AvgPool[123]d|MaxPool[123]d|BatchNorm[123]d|Conv(Transpose)?[123]d|CrossEntropyLoss|MSELoss|NLLLoss|BCELoss|Dropout[123]?d?|Embedding|EmbeddingBag|Flatten|GELU|GroupNorm|GRU|LSTM|RNN|Identity|InstanceNorm[123]d|LayerNorm|LeakyReLU|Linear|ModuleDict|ModuleList|MultiheadAttention|PReLU|RMSNorm|ReLU6?|Sequential|Sigmoid|SiLU|Softmax|Tanh|Transformer(Encoder|Decoder)?(Layer)?|Upsample|DataParallel|DistributedDataParallel|GraphModule|OptimizedModule)$`)
	pyBuiltin = pattern(`^(isinstance|issubclass|hasattr|getattr|setattr|len|next|iter|id|hash|print|repr|max|min|sum|abs|all|any|sorted|zip|map|open|callable|type|object|dict|list|set|tuple|str|bytes|int|float|bool|items|keys|values|get|pop|append|extend|add|update|copy|clear|join|split|encode|decode|format|__\w+__|torch(\.(_C|storage|nn|cuda|Tensor|UntypedStorage|_StorageMeta|_TensorMeta|dtype|device|Size))*|Tensor|data_ptr|untyped_storage|re\.(Pattern|Match)|match|span|group|PyCapsule)$`)
)

// function decides about a Python function, method or module.
func (p *Policy) function(text string) string {
	if p.o.Names != PrivateNames || p.o.Keep != nil && p.o.Keep.MatchString(text) {
		return p.name(kindFunc, text, false)
	}
	if m := frame().FindStringSubmatch(text); m != nil {
		if publicPy().MatchString(m[1]) && pyName().MatchString(m[3]) {
			return text
		}
		return p.path(m[1]) + "(" + m[2] + "): " + p.replace(kindFunc, m[3])
	}
	if m := module().FindStringSubmatch(text); m != nil {
		if publicNN().MatchString(m[2]) {
			return text
		}
		return m[1] + p.replace(kindModule, m[2]) + m[3]
	}
	if m := builtin().FindStringSubmatch(text); m != nil && (pyBuiltin().MatchString(m[2]) || publicIdentifier(m[2])) && (m[4] == "" || pyBuiltin().MatchString(m[4])) {
		return text
	}
	if publicNote().MatchString(text) && publicWordsOf(text) {
		return text
	}
	return p.replace(kindFunc, text)
}

// stack decides about frames separated by semicolons.
func (p *Policy) stack(text string) string {
	frames := strings.Split(text, ";")
	for i, f := range frames {
		frames[i] = p.function(f)
	}
	return strings.Join(frames, ";")
}

// Names of processes and threads.
var (
	publicProcess = pattern(`^(python[\d.]*|CPU|GPU \d+|Traces|Spans|CUDA|HIP|XPU|GPU \d+ Counters)$`)
	publicThread  = pattern(`^(stream -?\d+ ?(\((sync|overlap \d+)\)( \(overlap \d+\))?)?|stream -?\d+ annotations|thread (-?\d+) \((python[\d.]*|pt_main_thread|pt_autograd_\d+|pt_nccl_(watchdg|heartbt|\d+)|CuptiActivityPr|)\)|python[\d.]*|pt_main_thread|pt_autograd_\d+|pt_nccl_(watchdg|heartbt|\d+)|PyTorch Profiler|Trace PyTorch Profiler|Device \d+|cuda-EvtHandlr|cuda\d+)$`)
	threadNumber  = pattern(`^(thread )(-?\d+)( \()(.*)(\))$`)
)

func (p *Policy) process(text string) string {
	if publicProcess().MatchString(text) || plain().MatchString(text) && !ipOnly().MatchString(text) {
		return text
	}
	return p.replace(kindProcess, text)
}

func (p *Policy) thread(text string) string {
	if m := threadNumber().FindStringSubmatch(text); m != nil {
		name := m[4]
		if !publicThread().MatchString(text) && name != "" {
			name = p.replace(kindThread, name)
		}
		return m[1] + p.pidText(m[2]) + m[3] + name + m[5]
	}
	if publicThread().MatchString(text) || publicProcess().MatchString(text) || plain().MatchString(text) && !ipOnly().MatchString(text) {
		return text
	}
	return p.replace(kindThread, text)
}
