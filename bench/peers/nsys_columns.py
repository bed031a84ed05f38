"""The columns of an Nsight Systems export that tracelake reads, and no others."""

KERNEL = (
    "start, end, deviceId, contextId, streamId, correlationId, globalPid, demangledName, shortName, "
    "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, "
    "graphNodeId, graphId"
)
RUNTIME = "start, end, eventClass, globalTid, correlationId, returnValue, nameId"
TABLES = {"CUPTI_ACTIVITY_KIND_KERNEL": KERNEL, "CUPTI_ACTIVITY_KIND_RUNTIME": RUNTIME}


def query(table):
    return "SELECT " + TABLES[table].replace("end,", '"end",') + " FROM " + table
