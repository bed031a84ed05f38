package scratch

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestDeadOnesGo(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	alive, err := New()
	if err != nil {
		t.Fatal(err)
	}
	dead := filepath.Join(os.TempDir(), ownPrefix()+"0123")
	if err := os.Mkdir(dead, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dead + lockSuffix, filepath.Join(dead, "file"), filepath.Join(alive.Path(), "file")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	sweep(os.TempDir(), ownPrefix())
	left, err := os.ReadDir(os.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 2 || left[0].Name() != filepath.Base(alive.Path()) {
		t.Errorf("after a sweep there are %v; want the directory that is in use and its lock", left)
	}
	if err := alive.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(os.TempDir()); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestOtherHosts: what belongs to a machine whose name begins like that of this one
// stays, whose locks may be invisible here.
func TestOtherHosts(t *testing.T) {
	parent := t.TempDir()
	other := filepath.Join(parent, ownPrefix()+"1-0011223344556677")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other+lockSuffix, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sweep(parent, ownPrefix())
	if left, _ := os.ReadDir(parent); len(left) != 2 {
		t.Errorf("left: %v", left)
	}
}

// TestKilled kills a process that has a directory; the next one to make one
// there removes what it left.
func TestKilled(t *testing.T) {
	const place = "TRACELAKE_SCRATCH_TEST"
	if parent := os.Getenv(place); parent != "" {
		d, err := In(parent)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(d.Path())
		select {}
	}
	parent := filepath.Join(t.TempDir(), "a[b]*")
	if err := os.Mkdir(parent, 0o700); err != nil {
		t.Fatal(err)
	}
	child := exec.Command(os.Args[0], "-test.run=TestKilled")
	child.Env = append(os.Environ(), place+"="+parent)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(line)
	sweep(parent, ownPrefix())
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the directory of a living process is gone: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = child.Wait() // it was killed
	d, err := In(parent)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("what the killed process left is there: %v", err)
	}
	if err := d.Remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(parent); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
