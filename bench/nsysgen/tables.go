package main

import "strings"

// The columns of the 2026 schema, as far as an importer may meet them.
var tables = []struct{ name, columns string }{
	{"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL"},
	{"META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT"},
	{"META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT"},
	{"TARGET_INFO_SESSION_START_TIME", "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER"},
	{"TARGET_INFO_GPU", "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, totalMemory INTEGER, smCount INTEGER, uuid TEXT, computeMajor INTEGER, computeMinor INTEGER"},
	{"TARGET_INFO_CUDA_DEVICE", "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors INTEGER"},
	{"CUPTI_ACTIVITY_KIND_KERNEL", integers("start end deviceId contextId greenContextId streamId correlationId globalPid demangledName shortName " +
		"mangledName launchType cacheConfig registersPerThread gridX gridY gridZ blockX blockY blockZ staticSharedMemory dynamicSharedMemory " +
		"localMemoryPerThread localMemoryTotal gridId sharedMemoryExecuted graphNodeId sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone " +
		"qmdLastCtaDone graphId clusterX clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters")},
	{"CUPTI_ACTIVITY_KIND_RUNTIME", integers("start end eventClass globalTid correlationId nameId returnValue callchainId")},
	{"NVTX_EVENTS", "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, color INTEGER, text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER"},
}

func integers(names string) string {
	var cols []string
	for _, n := range strings.Fields(names) {
		cols = append(cols, n+" INTEGER")
	}
	return strings.Join(cols, ", ")
}
