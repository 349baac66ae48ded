// RaceDetector reports whether the race detector is on, which makes work ten times as long.

//go:build !race

package redistest

// RaceDetector reports whether the race detector is on.
const RaceDetector = false
