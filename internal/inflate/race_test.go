//go:build race

package inflate

// raceDetector tells tests to read less: it takes forty times as long, and races
// do not depend on what the text is.
const raceDetector = true
