package lake

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	helperEnv  = "TRACELAKE_TEST_WRITER"
	helperRoot = "TRACELAKE_TEST_ROOT"
	helperSize = 24 // traces that the helper cycles through
)

func TestMain(m *testing.M) {
	switch os.Getenv(helperEnv) {
	case "":
		os.Exit(m.Run())
	case "loop":
		writeForever(os.Getenv(helperRoot))
	case "compact":
		compactForever(os.Getenv(helperRoot))
	case "once":
		won, err := writeAll(os.Getenv(helperRoot))
		fmt.Println(won)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// writeForever commits and replaces traces until it is killed.
func writeForever(root string) {
	for i := 0; ; i++ {
		l, err := Create(root, "helper")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		rec := record(fmt.Sprint("content ", rand.IntN(helperSize)), "job", new(int64(1)))
		rec.Options = fmt.Sprint("options ", rand.IntN(3))
		if _, err := put(l, rec, i%2 == 0); err != nil && !errors.As(err, new(*DuplicateError)) {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// writeAll commits every trace in random order and counts the ones that were
// not there.
func writeAll(root string) (won int, err error) {
	l, err := Create(root, "helper")
	if err != nil {
		return 0, err
	}
	for _, i := range rand.Perm(helperSize) {
		rec := record(fmt.Sprint("content ", i), "job", nil)
		rec.Options = fmt.Sprint("options ", rand.IntN(2))
		_, err := put(l, rec, false)
		switch {
		case err == nil:
			won++
		case !errors.As(err, new(*DuplicateError)):
			return won, err
		}
	}
	return won, nil
}

func helper(t *testing.T, mode, root string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperEnv+"="+mode, helperRoot+"="+root)
	return cmd
}

// runAndKill runs two processes for a while and kills them. They may not have
// said anything.
func runAndKill(t *testing.T, mode, root string, after time.Duration) {
	t.Helper()
	processes := make([]*exec.Cmd, 2)
	var out [2]strings.Builder
	for i := range processes {
		processes[i] = helper(t, mode, root)
		processes[i].Stderr = &out[i]
		if err := processes[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(after)
	for i, p := range processes {
		if err := p.Process.Kill(); err != nil {
			t.Fatalf("%v: %s", err, out[i].String())
		}
		_ = p.Wait()
		if s := out[i].String(); s != "" {
			t.Fatal(s)
		}
	}
}

func TestKilledWriters(t *testing.T) {
	rounds := 25
	if testing.Short() {
		rounds = 5
	}
	root := t.TempDir()
	for range rounds {
		runAndKill(t, "loop", root, time.Duration(20+rand.IntN(80))*time.Millisecond)
		if _, err := os.Stat(root + "/" + MetaDir + "/" + formatFile); err != nil {
			continue // killed before there was a lake
		}
		l := create(t, root)
		commits, err := l.Commits()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			if !l.intact(&c) {
				t.Fatalf("trace %s is committed and not complete: %+v", c.TraceID, c.Files)
			}
		}
		parts, _ := tree(t, root)
		for _, p := range parts {
			if !strings.HasSuffix(p, ".parquet") {
				t.Fatalf("%s stands below a table", p)
			}
		}
	}
	l := create(t, root)
	if _, err := l.Sweep(-time.Hour); err != nil {
		t.Fatal(err)
	}
	parts, temps := tree(t, root)
	slices.Sort(parts)
	if want := committed(t, l); !slices.Equal(parts, want) || len(temps) != 0 {
		t.Errorf("after the sweep: parts %v, committed %v, temporary %v", parts, want, temps)
	}
}

func TestWritersAtOnce(t *testing.T) {
	root := t.TempDir()
	total := 0
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			out, err := helper(t, "once", root).CombinedOutput()
			n := 0
			fmt.Sscan(string(out), &n)
			mu.Lock()
			defer mu.Unlock()
			total += n
			if err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		wg.Go(func() {
			n, err := writeAll(root)
			mu.Lock()
			defer mu.Unlock()
			total += n
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	l := create(t, root)
	parts, temps := tree(t, root)
	slices.Sort(parts)
	if want := committed(t, l); total != helperSize || !slices.Equal(parts, want) || len(temps) != 0 {
		t.Errorf("%d commits of %d traces; parts %v, committed %v, temporary %v", total, helperSize, parts, want, temps)
	}
}
