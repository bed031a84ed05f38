package lake

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"tracelake/internal/store"
	"tracelake/schema"
)

// FormatName is the value of "format" in format.json.
const FormatName = "tracelake"

// MetaDir is the directory of a lake that holds everything but tables.
const MetaDir = "_tracelake"

const (
	formatFile = "format.json"
	formatPath = MetaDir + "/" + formatFile
)

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
func readFormat(at place) (Format, error) {
	var f Format
	data, err := at.read(formatPath)
	if err != nil {
		return f, err
	}
	root, path := at.path(""), at.path(formatPath)
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
	at, err := placeOf(root)
	if err != nil {
		return nil, err
	}
	f, err := readFormat(at)
	if _, local := at.(directory); errors.Is(err, fs.ErrNotExist) {
		root = at.path("")
		var missing *store.Error
		if errors.As(err, &missing) && missing.Kind == store.NoBucket {
			return nil, fmt.Errorf("lake: %w", err)
		}
		if !local {
			return nil, fmt.Errorf("lake: %s: %w", root, ErrNotLake)
		}
		if _, statErr := os.Stat(root); statErr != nil {
			return nil, fmt.Errorf("lake: %w", statErr)
		}
		return nil, fmt.Errorf("lake: %s: %w", root, ErrNotLake)
	}
	if err != nil {
		return nil, err
	}
	return newLake(at, f), nil
}

// Create opens a lake for writing and makes it where the directory is missing
// or empty. Writer names the program and its version in what is written.
func Create(root, writer string) (*Lake, error) {
	at, err := placeOf(root)
	if err != nil {
		return nil, err
	}
	f, err := readFormat(at)
	switch {
	case err == nil && f.SchemaVersion == schema.Version:
		l := newLakeWriter(at, f, writer)
		return l, l.settle()
	case err == nil: // older: from now on it holds files of this version, too
		l := newLakeWriter(at, currentFormat(writer), writer)
		return l, l.write(formatPath, l.format, replaceFile)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	l := newLakeWriter(at, currentFormat(writer), writer)
	if o := l.remote(); o != nil {
		err = o.vacant()
	} else if err = checkVacant(l.root); err == nil {
		if err = mkdirSynced(l.meta(commitsDir)); err != nil {
			err = fmt.Errorf("lake: %w", err)
		}
	}
	if err != nil {
		return nil, err
	}
	err = l.write(formatPath, l.format, createFile)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	// Another process may have been first: what it wrote counts.
	l.format, err = readFormat(at)
	return l, err
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
