//go:build !unix

// On these systems a process cannot be stopped and continued.

package redistest

import (
	"errors"
	"os"
)

func freeze(*os.Process) error { return errors.ErrUnsupported }

func thaw(*os.Process) error { return errors.ErrUnsupported }
