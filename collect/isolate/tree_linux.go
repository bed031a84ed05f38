package isolate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

// children of a process, by the kernel's own list where it keeps one.
func children(pid int) []int {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var out []int
	for _, name := range lists {
		text, err := os.ReadFile(name)
		if err != nil {
			continue
		}
		for _, f := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(f); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}

var listsChildren = sync.OnceValue(func() bool {
	_, err := os.Stat(fmt.Sprintf("/proc/self/task/%d/children", os.Getpid()))
	return err == nil
})

// tree lists the descendants of a process for measuring: cheap, and it may miss
// one that is just being born.
func tree(root int) []int {
	if !listsChildren() {
		return descendants(root)
	}
	var out []int
	queue := []int{root}
	for len(queue) > 0 {
		kids := children(queue[0])
		queue = append(queue[1:], kids...)
		out = append(out, kids...)
		if len(out) > 1<<16 {
			break
		}
	}
	return out
}

// descendants finds them by the parents of all processes: for killing, where
// none may be missed.
func descendants(root int) []int {
	kids := map[int][]int{}
	for _, pid := range processes() {
		if st, ok := readStat(pid); ok {
			kids[st.parent] = append(kids[st.parent], pid)
		}
	}
	var out []int
	queue := []int{root}
	for len(queue) > 0 {
		k := kids[queue[0]]
		queue = append(queue[1:], k...)
		out = append(out, k...)
	}
	return out
}

func processes() []int {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	out := make([]int, 0, len(names))
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			out = append(out, pid)
		}
	}
	return out
}

type procStat struct {
	state           byte
	parent, session int
}

// readStat reads /proc/PID/stat; the command name may hold anything, so that
// fields are counted from its last parenthesis.
func readStat(pid int) (procStat, bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return procStat{}, false
	}
	i := bytes.LastIndexByte(text, ')')
	if i < 0 {
		return procStat{}, false
	}
	f := strings.Fields(string(text[i+1:]))
	if len(f) < 4 {
		return procStat{}, false
	}
	parent, err1 := strconv.Atoi(f[1])
	session, err2 := strconv.Atoi(f[3])
	return procStat{f[0][0], parent, session}, err1 == nil && err2 == nil
}

func alive(pid int) bool {
	st, ok := readStat(pid)
	return ok && st.state != 'Z' && st.state != 'X'
}

// resident is the memory of processes, with what they share counted in each.
func resident(pids []int) int64 {
	page, sum := int64(os.Getpagesize()), int64(0)
	for _, p := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p))
		if err != nil {
			continue
		}
		if f := strings.Fields(string(text)); len(f) > 1 {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			sum += n * page
		}
	}
	return sum
}

// proportional counts shared memory once. It is slow, and zero where the
// kernel does not tell.
func proportional(pids []int) int64 {
	sum := int64(0)
	for _, p := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p))
		if err != nil {
			continue
		}
		if _, rest, ok := bytes.Cut(text, []byte("\nPss:")); ok {
			if f := strings.Fields(string(rest[:min(len(rest), 64)])); len(f) > 0 {
				n, _ := strconv.ParseInt(f[0], 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
}

// oomKills is how many processes the kernel ended for want of memory.
func oomKills() int64 {
	text, err := os.ReadFile("/proc/vmstat")
	if err != nil {
		return 0
	}
	if _, rest, ok := bytes.Cut(text, []byte("\noom_kill ")); ok {
		if f := strings.Fields(string(rest[:min(len(rest), 32)])); len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			return n
		}
	}
	return 0
}
