//go:build !linux

// On systems other than Linux, the go command's standard error is out of reach.

package redistest

import "os"

func goCommandStderr() *os.File { return nil }
