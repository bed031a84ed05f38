//go:build !race

package activity_test

// raceEnabled is set where the race detector slows everything down.
const raceEnabled = false
