//go:build !linux

package collect

const isolation = "process group: memory is not bounded, and processes that leave the group are not ended"
