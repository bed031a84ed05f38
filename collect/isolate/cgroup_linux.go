package isolate

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroup is a control group (v2) with a memory limit around one tree. It is
// used where one can be made: below the group that TRACELAKE_CGROUP names, or
// below or beside our own. Elsewhere the measured memory alone is the limit.
type cgroup struct{ dir string }

// newCgroup returns nil where no group with a limit can be made.
func newCgroup(limit int64) *cgroup {
	if limit <= 0 {
		return nil
	}
	for _, parent := range cgroupParents() {
		if text, err := os.ReadFile(filepath.Join(parent, "cgroup.subtree_control")); err != nil || !strings.Contains(string(text), "memory") {
			continue
		}
		dir := filepath.Join(parent, fmt.Sprintf("tracelake-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		g := &cgroup{dir}
		if g.set("memory.max", strconv.FormatInt(limit, 10)) == nil {
			_ = g.set("memory.swap.max", "0")
			_ = g.set("memory.oom.group", "1")
			return g
		}
		g.remove()
	}
	return nil
}

func cgroupParents() []string {
	if dir := os.Getenv("TRACELAKE_CGROUP"); dir != "" {
		return []string{dir}
	}
	mount, own := "", ""
	eachLine("/proc/self/mountinfo", func(line string) {
		if before, after, ok := strings.Cut(line, " - "); ok && strings.HasPrefix(after, "cgroup2 ") {
			if f := strings.Fields(before); len(f) > 4 && mount == "" {
				mount = f[4]
			}
		}
	})
	eachLine("/proc/self/cgroup", func(line string) {
		if p, ok := strings.CutPrefix(line, "0::"); ok {
			own = p
		}
	})
	if mount == "" || own == "" {
		return nil
	}
	dir := filepath.Join(mount, own)
	if own == "/" {
		return []string{dir}
	}
	return []string{dir, filepath.Dir(dir)}
}

func eachLine(path string, f func(string)) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	for sc := bufio.NewScanner(file); sc.Scan(); {
		f(sc.Text())
	}
}

func (g *cgroup) set(name, value string) error {
	return os.WriteFile(filepath.Join(g.dir, name), []byte(value), 0o644)
}

func (g *cgroup) open() (int, error) {
	return unix.Open(g.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
}

func (g *cgroup) killAll() { _ = g.set("cgroup.kill", "1") }

// exceeded says whether the kernel ended something of the group for its memory.
func (g *cgroup) exceeded() bool {
	hit := false
	eachLine(filepath.Join(g.dir, "memory.events"), func(line string) {
		n, ok := strings.CutPrefix(line, "oom_kill ")
		hit = hit || ok && n != "0"
	})
	return hit
}

func (g *cgroup) peak() int64 {
	text, err := os.ReadFile(filepath.Join(g.dir, "memory.peak"))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
}

func (g *cgroup) remove() { _ = os.Remove(g.dir) }
