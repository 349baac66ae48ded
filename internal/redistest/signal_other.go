//go:build !unix

// Stopping and continuing a process, where that cannot be done.

package redistest

import (
	"errors"
	"os"
)

func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }
