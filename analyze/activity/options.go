package activity

import (
	"fmt"

	"tracelake/analyze/execlog"
	"tracelake/schema"
)

// ReferenceVersion is the version of the reference whose records Capture
// reproduces.
const ReferenceVersion = "0.4.3"

// Options are the inputs of a capture besides the trace.
type Options struct {
	RunID, SessionID string
	// AttachmentID names the file in records and clock domains; the trace's own
	// ID, or else the file name, does so where it is empty.
	AttachmentID string
	// DeviceUUIDs names the GPU of an ordinal for every process of the trace.
	DeviceUUIDs map[int64]string
	// DeviceUUIDsByPID names the GPU of a process's ordinal. DeviceUUIDs wins.
	DeviceUUIDsByPID map[int64]map[int64]string
	// ExecutionLog tells the GPUs of processes instead of DeviceUUIDsByPID.
	ExecutionLog *execlog.Log
	Detail       string // launch (where empty) or kernel
	// Compat links as the reference does. Otherwise launches of several
	// processes with one correlation ID are told apart and events without one
	// are linked by External id.
	Compat bool
	// SourceVersion is written as source_version; ReferenceVersion where empty.
	SourceVersion string
}

// uuids resolves the GPU of a device.
type uuids struct {
	option    map[int64]string
	byPID     map[int64]map[int64]string
	processes []int64 // distinct launching processes
}

// Sources of a device UUID.
const (
	fromTrace  = "trace"
	fromOption = "option"
	fromLog    = "execution_log"
)

// find returns the UUID that the options give a device of a process, and
// which. Where the process is unknown and the trace has one launching process,
// it is that one. Process 0 counts as unknown.
func (u *uuids) find(pid, device int64) (uuid, source string) {
	if device == schema.Null {
		return "", ""
	}
	if v, ok := u.option[device]; ok {
		return v, fromOption
	}
	if pid == schema.Null && len(u.processes) == 1 {
		pid = u.processes[0]
	}
	if pid == schema.Null || pid == 0 {
		return "", ""
	}
	if v, ok := u.byPID[pid][device]; ok {
		return v, fromLog
	}
	return "", ""
}

// checkUUIDs refuses an option that contradicts a UUID that the trace names.
func checkUUIDs(t *schema.Trace, option map[int64]string) error {
	e := &t.GPU
	if e.UUID == nil || len(option) == 0 {
		return nil
	}
	for i := range e.Len() {
		own := textAt(e.UUID, e.Names, int32(i))
		want, ok := option[e.Device[i]]
		if ok && own != "" && e.Device[i] != schema.Null && want != own {
			return &UsageError{fmt.Sprintf("--device-uuid %d=%s: the trace names process %s's device %d %s",
				e.Device[i], want, number(t, t.ProcessID(pidOf(e, int32(i))), "None"), e.Device[i], own)}
		}
	}
	return nil
}

// textAt returns an optional text of a column whose entries are positions in
// names plus one, "" where unknown.
func textAt(col []uint32, names []string, i int32) string {
	if col == nil || col[i] == 0 {
		return ""
	}
	return names[col[i]-1]
}
