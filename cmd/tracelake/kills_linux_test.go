package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// killsEnv says for how long processes are killed, as in 10m.
const killsEnv = "TRACELAKE_TEST_KILLS"

func program(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), programEnv+"=1")
	return cmd
}

// mustRun runs the program to its end and returns how long that took.
func mustRun(t *testing.T, args ...string) time.Duration {
	t.Helper()
	began := time.Now()
	if out, err := program(args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return time.Since(began)
}

// killing starts one or two programs at once and sends each a signal at an
// instant of its life. A program that had a say ends as one that was signalled.
func killing(t *testing.T, random *rand.Rand, life time.Duration, args []string) (what string) {
	t.Helper()
	type victim struct {
		cmd *exec.Cmd
		out *strings.Builder
		sig syscall.Signal
	}
	var victims []victim
	for range 1 + random.IntN(2) {
		v := victim{program(args...), &strings.Builder{}, []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT}[random.IntN(3)]}
		v.cmd.Stdout, v.cmd.Stderr = v.out, v.out
		if err := v.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		victims = append(victims, v)
	}
	for _, v := range victims {
		after := time.Duration(random.Int64N(int64(life)))
		time.Sleep(after)
		_ = v.cmd.Process.Signal(v.sig) // it may have ended
		what += fmt.Sprintf(" %v after %v;", v.sig, after)
	}
	for _, v := range victims {
		err := v.cmd.Wait()
		var e *exec.ExitError
		if err == nil || errors.As(err, &e) && (e.Sys().(syscall.WaitStatus).Signaled() || slices.Contains([]int{130, 143}, e.ExitCode())) {
			continue
		}
		t.Errorf("%v:%s %v\n%s", args, what, err, v.out)
	}
	return what
}

// TestKilledAnywhere ends imports and compactions, one or two at once on a
// dataset, at random instants. What is committed is whole each time, and in the
// end the dataset is the one that an undisturbed program writes, with nothing
// beside it once it was swept.
func TestKilledAnywhere(t *testing.T) {
	lasts := 4 * time.Second
	if text := os.Getenv(killsEnv); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	inputs := []string{"../../testdata/demo/cpu", "../../testdata/demo/serving", "../../testdata/demo/training-nsight/report.sqlite"}
	top := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	converting := func(root string) []string { return append([]string{"convert", "-o", root}, inputs...) }
	compacting := func(root string) []string { return []string{"compact", root} }
	undisturbed := filepath.Join(top, "undisturbed", "lake")
	lives := []time.Duration{mustRun(t, converting(undisturbed)...), 0}
	was := []string{"", filepath.Join(top, "was")}
	want := []map[string][]byte{files(t, undisturbed, undisturbed), nil}
	views := filepath.Join("_tracelake", "views.sql") // names the dataset
	if err := errors.Join(os.CopyFS(was[1], os.DirFS(undisturbed)), os.Remove(filepath.Join(undisturbed, views)), os.Remove(filepath.Join(was[1], views))); err != nil {
		t.Fatal(err)
	}
	lives[1] = mustRun(t, compacting(undisturbed)...)
	want[1] = files(t, undisturbed, undisturbed)
	began, kills, rounds := time.Now(), 0, 0
	for ; rounds < 2 || time.Since(began) < lasts; rounds++ {
		kind := rounds % 2
		root := filepath.Join(top, fmt.Sprint(rounds), "lake")
		args := converting(root)
		if kind == 1 {
			args = compacting(root)
			if err := os.CopyFS(root, os.DirFS(was[kind])); err != nil {
				t.Fatal(err)
			}
		}
		for range 1 + random.IntN(4) {
			what := killing(t, random, lives[kind]*5/4, args)
			kills++
			if err := broken(root); err != nil {
				t.Fatalf("%v:%s %v", args, what, err)
			}
		}
		mustRun(t, args...)
		mustRun(t, "vacuum", "--older-than", "0s", root)
		if d := differ(files(t, root, root), want[kind]); len(d) != 0 {
			t.Fatalf("round %d: %v", rounds, d)
		}
		if err := os.RemoveAll(filepath.Dir(root)); err != nil {
			t.Fatal(err)
		}
	}
	if left := files(t, os.Getenv("TMPDIR"), "temp"); len(left) != 0 {
		t.Errorf("temporary files: %d", len(left))
	}
	t.Logf("%d times killed in %d rounds", kills, rounds)
}
