//go:build race

package redistest

// RaceDetector reports whether the race detector is on.
const RaceDetector = true
