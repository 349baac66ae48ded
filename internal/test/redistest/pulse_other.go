//go:build !linux

// On systems other than Linux, no thread is kept on a processor.

package redistest

import "time"

func processors() []int { return nil }

func onProcessor(int, func()) {}

func sleepThread(d time.Duration) { time.Sleep(d) }
