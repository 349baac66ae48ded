// Package child runs a program in a process group of its own, as one that must end when its time is over.
package child

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
)

// NotStarted says that the program could not be started.
type NotStarted struct{ Err error }

func (n *NotStarted) Error() string { return fmt.Sprintf("cannot run %v", n.Err) }
func (n *NotStarted) Unwrap() error { return n.Err }

// Code returns the exit code that shells and env(1) have for it: 127 if the program was not found, else 126.
func (n *NotStarted) Code() int {
	if errors.Is(n.Err, fs.ErrNotExist) || errors.Is(n.Err, exec.ErrNotFound) {
		return 127
	}
	return 126
}
