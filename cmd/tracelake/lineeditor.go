package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/term"
)

// errAborted means that the line being typed was given up with Ctrl-C.
var errAborted = errors.New("line given up")

func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// lineEditor reads lines from a terminal. The terminal is in raw mode only
// while a line is typed, so that Ctrl-C is a signal at any other time.
type lineEditor struct {
	in       *os.File
	out      io.Writer
	complete func(word string) string
	history  *history

	terminal *term.Terminal
	ctrlC    bool // typed, and not yet read
}

// Read watches what is typed for Ctrl-C, which term.Terminal reports like the
// end of the input.
func (e *lineEditor) Read(p []byte) (int, error) {
	n, err := e.in.Read(p)
	e.ctrlC = e.ctrlC || bytes.IndexByte(p[:n], 3) >= 0
	return n, err
}

func (e *lineEditor) Write(p []byte) (int, error) { return e.out.Write(p) }

// line reads a line. It returns io.EOF at the end of the input, errAborted for
// Ctrl-C and the cause of ctx when that ends first.
func (e *lineEditor) line(ctx context.Context, prompt string) (string, error) {
	if e.terminal == nil {
		e.terminal = term.NewTerminal(e, "")
		e.terminal.History = e.history
		e.terminal.AutoCompleteCallback = e.key
	}
	e.terminal.SetPrompt(prompt)
	fd := int(e.in.Fd())
	if width, height, err := term.GetSize(fd); err == nil && width > 0 && height > 0 {
		_ = e.terminal.SetSize(width, height) // a wrong size draws badly and harms nothing
	}
	before, err := term.MakeRaw(fd)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(fd, before) }()

	type result struct {
		text string
		err  error
	}
	typed := make(chan result, 1)
	go func() {
		text, err := e.terminal.ReadLine()
		typed <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case r := <-typed:
		if r.err == nil {
			return r.text, nil
		}
		// The editor keeps the key that ended it: start with a new one.
		e.terminal = nil
		_, _ = io.WriteString(e.out, "\r\n")
		if errors.Is(r.err, io.EOF) && e.ctrlC {
			e.ctrlC = false
			return "", errAborted
		}
		return "", r.err
	}
}

// key completes the word before the cursor when Tab is typed.
func (e *lineEditor) key(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' {
		return "", 0, false
	}
	start := strings.LastIndexAny(line[:pos], " \t(,\"'") + 1
	more := e.complete(line[start:pos])
	return line[:pos] + more + line[pos:], pos + len(more), true
}

// completion returns what all names that start with a word have in common
// behind it.
func completion(names []string, word string) string {
	common, found := "", false
	for _, name := range names {
		rest, ok := strings.CutPrefix(name, word)
		switch {
		case !ok || word == "":
		case !found:
			common, found = rest, true
		default:
			for !strings.HasPrefix(rest, common) {
				common = common[:len(common)-1]
			}
		}
	}
	return common
}

// history holds the lines that were typed, the oldest first, and keeps them in
// a file. That is a convenience: what cannot be read or written is left out.
type history struct {
	lines []string
	path  string // "" keeps nothing
}

// maxHistory bounds the lines that are kept.
const maxHistory = 1000

// historyPath returns where the lines of the prompt are kept.
func historyPath() string {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "tracelake", "sql_history")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return ""
	}
	return filepath.Join(home, ".local", "state", "tracelake", "sql_history")
}

func loadHistory(path string) *history {
	h := &history{path: path}
	data, err := os.ReadFile(path)
	if err != nil || len(data) == 0 {
		return h
	}
	h.lines = strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	h.bound()
	return h
}

func (h *history) bound() { h.lines = slices.Delete(h.lines, 0, max(0, len(h.lines)-maxHistory)) }

// Add appends a line, unless it repeats the one before.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || len(h.lines) > 0 && h.lines[len(h.lines)-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	h.bound()
}

// Len returns the number of lines.
func (h *history) Len() int { return len(h.lines) }

// At returns a line, counted from the newest.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

func (h *history) save() {
	if h.path == "" || len(h.lines) == 0 || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	_ = os.WriteFile(h.path, []byte(strings.Join(h.lines, "\n")+"\n"), 0o600)
}
