//go:build race

package redistest

// RaceDetector reports whether the race detector looks on.
const RaceDetector = true
