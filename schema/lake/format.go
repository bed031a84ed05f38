package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"tracelake/schema"
)

// FormatName is the value of "format" in format.json.
const FormatName = "tracelake"

// MetaDir is the directory of a lake that holds everything but tables.
const MetaDir = "_tracelake"

const formatFile = "format.json"

// Format is the content of _tracelake/format.json.
type Format struct {
	Format        string   `json:"format"`
	SchemaVersion int      `json:"schema_version"` // highest version of any file
	Tables        []string `json:"tables"`
	Writer        string   `json:"writer"` // program that wrote this file
}

func currentFormat(writer string) Format {
	f := Format{Format: FormatName, SchemaVersion: schema.Version, Writer: writer}
	for _, t := range schema.Tables {
		f.Tables = append(f.Tables, t.Name)
	}
	return f
}

// readFormat reads and checks format.json. The error is fs.ErrNotExist where
// there is none.
func readFormat(root string) (Format, error) {
	var f Format
	path := filepath.Join(root, MetaDir, formatFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("lake: %s: %w", path, err)
	}
	if f.Format != FormatName {
		return f, fmt.Errorf("lake: %s: format %q: %w", root, f.Format, ErrNotLake)
	}
	if f.SchemaVersion > schema.Version {
		return f, fmt.Errorf("lake: %s: schema version %d, this program knows up to %d: %w", root, f.SchemaVersion, schema.Version, ErrNewer)
	}
	return f, nil
}

// Open opens an existing lake. It writes nothing.
func Open(root string) (*Lake, error) {
	f, err := readFormat(root)
	if errors.Is(err, fs.ErrNotExist) {
		if _, statErr := os.Stat(root); statErr != nil {
			return nil, fmt.Errorf("lake: %w", statErr)
		}
		return nil, fmt.Errorf("lake: %s: %w", root, ErrNotLake)
	}
	if err != nil {
		return nil, err
	}
	return newLake(root, f), nil
}

// Create opens a lake for writing and makes it where the directory is missing
// or empty. Writer names the program and its version in what is written.
func Create(root, writer string) (*Lake, error) {
	f, err := readFormat(root)
	switch {
	case err == nil && f.SchemaVersion == schema.Version:
		l := newLakeWriter(root, f, writer)
		return l, l.settle()
	case err == nil: // older: from now on it holds files of this version, too
		f = currentFormat(writer)
		if err := writeJSON(filepath.Join(root, MetaDir, formatFile), f, replaceFile); err != nil {
			return nil, err
		}
		return newLakeWriter(root, f, writer), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := checkVacant(root); err != nil {
		return nil, err
	}
	if err := mkdirSynced(filepath.Join(root, MetaDir, commitsDir)); err != nil {
		return nil, fmt.Errorf("lake: %w", err)
	}
	err = writeJSON(filepath.Join(root, MetaDir, formatFile), currentFormat(writer), createFile)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	// Another process may have been first: what it wrote counts.
	if f, err = readFormat(root); err != nil {
		return nil, err
	}
	return newLakeWriter(root, f, writer), nil
}

// checkVacant makes sure that a new lake does not mix with other files. A
// directory with nothing but the metadata directory is the work of a process
// that is creating the lake at this moment, or was killed while it did.
func checkVacant(root string) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("lake: %w", err)
	}
	for _, e := range entries {
		if e.Name() != MetaDir {
			return fmt.Errorf("lake: %s holds %s but no %s/%s: %w; give an empty or a new directory", root, e.Name(), MetaDir, formatFile, ErrNotLake)
		}
	}
	return nil
}
