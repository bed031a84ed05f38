package activity

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"tracelake/internal/regular"
	"tracelake/schema"
)

// DeviceUUIDs are the --device-uuid options of one command: the UUIDs of GPUs
// by ordinal, for every trace or for one trace. An ordinal counts inside the
// traced process, after CUDA_VISIBLE_DEVICES.
type DeviceUUIDs struct {
	Shared   map[int64]string
	selected map[string]map[int64]string // by selector as given
	perTrace map[string]map[int64]string // by resolved path, after Bind
}

// ParseDeviceUUIDs reads options of the form [TRACE:]INDEX=UUID; a bare UUID is
// that of device 0. It fails with a UsageError when one is malformed or when an
// ordinal is given two UUIDs in one scope.
func ParseDeviceUUIDs(values []string) (*DeviceUUIDs, error) {
	u := &DeviceUUIDs{Shared: map[int64]string{}, selected: map[string]map[int64]string{}}
	for _, value := range values {
		left, uuid, ok := strings.Cut(value, "=")
		if !ok {
			left, uuid = "0", value
		}
		selector, index, colon := "", left, strings.LastIndexByte(left, ':')
		if colon >= 0 {
			selector, index = left[:colon], left[colon+1:]
		}
		ordinal, err := strconv.ParseInt(index, 10, 64)
		if err != nil || strings.Trim(index, "0123456789") != "" || uuid == "" || colon == 0 {
			return nil, &UsageError{fmt.Sprintf("--device-uuid %q: expected [TRACE:]INDEX=UUID", value)}
		}
		table := u.Shared
		if colon > 0 {
			if u.selected[selector] == nil {
				u.selected[selector] = map[int64]string{}
			}
			table = u.selected[selector]
		}
		if err := put(table, ordinal, uuid, selector); err != nil {
			return nil, err
		}
	}
	return u, nil
}

func put(table map[int64]string, ordinal int64, uuid, selector string) error {
	if old, ok := table[ordinal]; ok && old != uuid {
		of := ""
		if selector != "" {
			of = " of " + selector
		}
		return &UsageError{fmt.Sprintf("--device-uuid: device %d%s given twice", ordinal, of)}
	}
	table[ordinal] = uuid
	return nil
}

// Bind matches every selector to exactly one of the traces: a path as given or
// resolved, else a file name that one trace alone has. It fails with a
// UsageError when a selector fits none or several, or when two selectors of
// one trace contradict each other.
func (u *DeviceUUIDs) Bind(paths []string) error {
	u.perTrace = map[string]map[int64]string{}
	for _, selector := range slices.Sorted(maps.Keys(u.selected)) {
		trace, err := selectTrace(selector, paths)
		if err != nil {
			return err
		}
		if u.perTrace[trace] == nil {
			u.perTrace[trace] = map[int64]string{}
		}
		entries := u.selected[selector]
		for _, ordinal := range slices.Sorted(maps.Keys(entries)) {
			if err := put(u.perTrace[trace], ordinal, entries[ordinal], selector); err != nil {
				return err
			}
		}
	}
	return nil
}

// selectTrace returns the resolved path of the trace that a selector names.
func selectTrace(selector string, paths []string) (string, error) {
	byPath, byName := map[string]bool{}, map[string]bool{}
	for _, p := range paths {
		full := resolve(p)
		if filepath.Clean(p) == filepath.Clean(selector) || full == resolve(selector) {
			byPath[full] = true
		}
		if filepath.Base(p) == selector {
			byName[full] = true
		}
	}
	for _, found := range []map[string]bool{byPath, byName} {
		if len(found) == 1 {
			for full := range found {
				return full, nil
			}
		}
	}
	if len(byName) > 0 {
		return "", &UsageError{fmt.Sprintf("--device-uuid %s:...: %d traces are named %s; give the trace's path instead",
			selector, len(byName), selector)}
	}
	return "", &UsageError{fmt.Sprintf("--device-uuid %s:...: no trace is %s", selector, selector)}
}

// For returns the UUIDs of a trace: the shared ones, overridden by its own.
// Bind must have succeeded where there are selectors.
func (u *DeviceUUIDs) For(path string) map[int64]string {
	out := maps.Clone(u.Shared)
	maps.Copy(out, u.perTrace[resolve(path)])
	return out
}

// CheckShared refuses an ordinal whose UUID was applied although several
// processes use the ordinal, because each may map it to another GPU. A process
// is told apart by host, rank and process ID; all launching processes of a
// trace whose GPU events name none count as one. The summaries belong to the
// paths.
func (u *DeviceUUIDs) CheckShared(paths []string, summaries []*Summary) error {
	type scope struct {
		trace   string // "" for shared entries
		ordinal int64
	}
	users, applied := map[scope]map[string]bool{}, map[scope]bool{}
	for i, s := range summaries {
		own := u.perTrace[resolve(paths[i])]
		for _, d := range s.Devices {
			at := scope{ordinal: d.Ordinal.V}
			if _, ok := own[at.ordinal]; ok {
				at.trace = paths[i]
			} else if _, ok := u.Shared[at.ordinal]; !ok {
				continue
			}
			if !d.Ordinal.OK {
				continue
			}
			if users[at] == nil {
				users[at] = map[string]bool{}
			}
			users[at][identity(s, d.PID)] = true
			applied[at] = applied[at] || d.UUIDSource != nil && *d.UUIDSource == fromOption
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(applied), func(a, b scope) int {
		return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
	}) {
		if applied[at] && len(users[at]) > 1 {
			given := strconv.FormatInt(at.ordinal, 10)
			if at.trace != "" {
				given = at.trace + ":" + given
			}
			return &UsageError{fmt.Sprintf("--device-uuid %s=...: several processes use device %d, which each may map "+
				"to a different GPU; give a UUID per trace as TRACE:%d=UUID", given, at.ordinal, at.ordinal)}
		}
	}
	return nil
}

func identity(s *Summary, pid schema.Opt[int64]) string {
	if pid.OK {
		return fmt.Sprintf("%s %s pid %d", s.Host, s.Rank, pid.V)
	}
	return fmt.Sprintf("%s %s launching %v", s.Host, s.Rank, s.Processes)
}

// ReadDeviceUUIDsByPID reads a JSON file of the form
// {"PID": {"ORDINAL": "UUID"}}. Anything else is a UsageError that names the
// file.
func ReadDeviceUUIDsByPID(path string) (map[int64]map[int64]string, error) {
	text, err := regular.ReadFile(path)
	if err != nil {
		return nil, &UsageError{fmt.Sprintf("--device-uuids-by-pid: %v", err)}
	}
	var raw map[string]map[string]string
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, &UsageError{fmt.Sprintf("--device-uuids-by-pid %s: %v", path, err)}
	}
	out := map[int64]map[int64]string{}
	for pidText, devices := range raw {
		pid, err := strconv.ParseInt(pidText, 10, 64)
		if err != nil || pid < 0 {
			return nil, &UsageError{fmt.Sprintf("--device-uuids-by-pid %s: %q is no process ID", path, pidText)}
		}
		if out[pid] == nil {
			out[pid] = map[int64]string{}
		}
		for ordinalText, uuid := range devices {
			ordinal, err := strconv.ParseInt(ordinalText, 10, 64)
			if err != nil || ordinal < 0 || uuid == "" {
				return nil, &UsageError{fmt.Sprintf("--device-uuids-by-pid %s: process %d: %q: %q is no ordinal with a UUID",
					path, pid, ordinalText, uuid)}
			}
			if err := put(out[pid], ordinal, uuid, "process "+pidText); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
