package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tracelake/internal/scratch"
	"tracelake/internal/store"
)

// filesOnly are commands whose arguments are files of this machine.
var filesOnly = []string{"activities", "redact", "bench"}

// fileFlags are flags that name files and directories.
var fileFlags = []string{
	"config", "device-uuids-by-pid", "devices", "file", "install", "model-list", "model-path", "output", "output-dir", "prompt-file",
	"python", "record", "request-file", "skip-model-list", "temp-dir", "trace-dir", "vllm-execution-dir",
}

// writers are commands whose --output may be an object.
var writers = []string{"activities", "convert", "redact", "report", "slice"}

// onThisMachine refuses URLs of object stores where files are wanted, before a
// directory of such a name is made, and turns file URLs into paths there.
func onThisMachine(c *cobra.Command, args []string) (err error) {
	if slices.Contains(filesOnly, c.Name()) {
		for i, arg := range args {
			if args[i], err = localFile(c, "", arg); err != nil {
				return err
			}
		}
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if err != nil || !slices.Contains(fileFlags, f.Name) || f.Value.Type() != "string" {
			return
		}
		text := f.Value.String()
		if f.Name == "output" && slices.Contains(writers, c.Name()) && store.IsURL(text) {
			return
		}
		if text, err = localFile(c, "--"+f.Name+" ", text); err == nil {
			err = f.Value.Set(text)
		}
	})
	return err
}

func localFile(c *cobra.Command, flag, name string) (string, error) {
	if store.IsURL(name) {
		what := "reads files of this machine: copy it here, or give its dataset to sql or analyze, which take URLs"
		if flag != "" {
			what = "must be on this machine: give a path, and copy the file or directory"
		}
		if flag == "--output-dir " {
			what += "; --convert takes the URL of a dataset"
		}
		return "", errUsage("%s: %s%s %s", c.Name(), flag, store.Clean(name), what)
	}
	local, err := store.Local(name)
	if err != nil {
		return "", errUsage("%s: %v", c.Name(), err)
	}
	return local, nil
}

// withoutParams is what a URL is shown as.
func withoutParams(name string) string {
	if store.IsURL(name) {
		name, _, _ = strings.Cut(name, "?")
	}
	return name
}

// writeObject writes an object that appears only when it is complete, by way of
// a temporary file.
func writeObject(url string, write func(io.Writer) error) error {
	ctx := context.Background()
	s, key, err := store.OpenURL(ctx, url)
	if err == nil && (key == "" || strings.HasSuffix(key, "/")) {
		err = errUsage("%s: names no object", withoutParams(url))
	}
	if err != nil {
		return &outputError{err}
	}
	tmp, err := scratch.New()
	if err != nil {
		return &outputError{err}
	}
	defer tmp.Remove() //nolint:errcheck // the next sweep tries again
	f, err := os.Create(filepath.Join(tmp.Path(), "object"))
	if err != nil {
		return &outputError{err}
	}
	defer f.Close()
	out := &checkedWriter{w: f}
	b := bufio.NewWriterSize(out, 1<<16)
	if err := write(b); err != nil && out.err == nil {
		return err
	}
	if err := errors.Join(out.err, b.Flush()); err != nil {
		return &outputError{err}
	}
	st, err := f.Stat()
	if err == nil {
		err = s.Put(ctx, key, f, st.Size(), store.If{})
	}
	if err != nil {
		return &outputError{err}
	}
	return nil
}
