package redact

// Class is what a text of a report of Nsight Systems is.
type Class uint8

// Classes of texts, the least private first.
const (
	API Class = iota + 1
	SystemCall
	Words
	Product
	Version
	KernelName
	Annotation
	Thread
	Process
	UUID
	Host
	Message
	Value
)

var classRules = map[Class]*rule{
	API: texts((*Policy).api), SystemCall: texts((*Policy).systemCall), Words: wordRule, Product: texts((*Policy).gpu), Version: versions,
	KernelName: texts((*Policy).kernel), Annotation: texts((*Policy).annotation), Thread: texts((*Policy).thread), Process: texts((*Policy).process),
	UUID: uuidRule, Host: hostRule, Message: texts(func(p *Policy, s string) string { return p.replace(kindMessage, s) }), Value: unknown,
}

// Text decides about a text of a class.
func (p *Policy) Text(c Class, s string) string {
	rl := classRules[c]
	if rl == nil {
		rl = unknown
	}
	return p.decide(rl, s)
}

// PID decides about the ID of a process or thread.
func (p *Policy) PID(n int64) int64 { return p.pid(n) }

var systemCall = pattern(`^(pthread_(mutex|cond|rwlock|spin|barrier)_\w{4,12}|pthread_(create|join|kill|once)|sem_\w{4,9}|epoll_\w{4,6}|(p|e)?poll|p?select|ioctl|p?read(v|64)?|p?write(v|64)?|f?open(at|64|at64)?|f?close|mmap(64)?|munmap|mprotect|futex|fork|vfork|execve|wait(pid|id|3|4)?|accept4?|bind|connect|listen|socket(pair)?|send(to|msg|mmsg)?|recv(from|msg|mmsg)?|(nano|u)?sleep|clock_nanosleep|f?sync|fdatasync|fflush|fgets?c?|fputs?c?|fread|fwrite|getline|putc?|puts|sched_yield|sigwait\w*|signal|sigaction|process_vm_\w+|pipe2?|dup[23]?|stat|fcntl|flock|lockf|msync|madvise|backtrace|posix_fallocate|shutdown|kill|tgkill|inotify_\w+|eventfd\w*|timerfd_\w+|truncate|ftruncate)$`)

func (p *Policy) systemCall(s string) string {
	return p.name(kindName, s, systemCall().MatchString(s))
}

var (
	// PyTorch's emit_nvtx adds what identifies a call.
	emitted = pattern(`^(.*?)((?:, (?:seq|op_id|sizes|stashed_seq) = [\d\[\], ]+)+)$`)
	domains = pattern(`^(NCCL|CCCL|CUB|Thrust|cuBLAS|cuDNN|cuFFT|CUDA|NVTX|MPI|UCX|NVSHMEM)$`)
)

// annotation decides about the text of an NVTX range, mark or domain.
func (p *Policy) annotation(s string) string {
	if m := emitted().FindStringSubmatch(s); m != nil {
		return p.annotation(m[1]) + m[2]
	}
	if p.o.Names == PrivateNames && (domains().MatchString(s) || apiName().MatchString(s)) {
		return s
	}
	return p.operator(s)
}
