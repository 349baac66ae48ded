//go:build !linux

// Elsewhere than on Linux the go command's standard error is out of reach.

package redistest

import "os"

func goCommandStderr() *os.File { return nil }
