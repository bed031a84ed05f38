package isolate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Plain files stand in for the kernel's: what is written where, and what is
// made of what the kernel reports.
func TestCgroupFiles(t *testing.T) {
	parent := t.TempDir()
	t.Setenv("TRACELAKE_CGROUP", parent)
	put := func(dir, name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if g := newCgroup(1 << 20); g != nil {
		t.Fatal("a group below a directory that is no control group")
	}
	put(parent, "cgroup.subtree_control", "cpu pids\n")
	if g := newCgroup(1 << 20); g != nil {
		t.Fatal("a group without the memory controller")
	}
	put(parent, "cgroup.subtree_control", "cpu memory pids\n")
	if g := newCgroup(0); g != nil {
		t.Fatal("a group without a limit")
	}
	g := newCgroup(3 << 30)
	if g == nil {
		t.Fatal("no group")
	}
	if filepath.Dir(g.dir) != parent {
		t.Errorf("made in %s", g.dir)
	}
	if again := newCgroup(1 << 20); again != nil {
		t.Error("a group that is there already was taken")
	}
	g.killAll()
	for name, want := range map[string]string{
		"memory.max": "3221225472", "memory.swap.max": "0", "memory.oom.group": "1", "cgroup.kill": "1",
	} {
		if got, err := os.ReadFile(filepath.Join(g.dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if g.exceeded() || g.peak() != 0 {
		t.Error("without reports of the kernel")
	}
	put(g.dir, "memory.events", "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n")
	put(g.dir, "memory.peak", "209715200\n")
	if g.exceeded() || g.peak() != 200<<20 {
		t.Errorf("reached without being ended: %v, %d", g.exceeded(), g.peak())
	}
	put(g.dir, "memory.events", "max 12\noom 1\noom_kill 3\n")
	if !g.exceeded() {
		t.Error("three processes were ended")
	}
}

// Groups are tried below and beside the one that this process is in.
func TestCgroupParents(t *testing.T) {
	t.Setenv("TRACELAKE_CGROUP", "")
	found := cgroupParents()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Skip("no /proc/self/mountinfo")
	}
	if !strings.Contains(string(mounts), " - cgroup2 ") {
		if found != nil {
			t.Errorf("%v without version 2", found)
		}
		return
	}
	if len(found) < 1 || len(found) > 2 {
		t.Fatalf("%v", found)
	}
	for _, dir := range found {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
