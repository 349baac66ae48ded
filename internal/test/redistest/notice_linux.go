// On Linux, this is how to reach the standard error of the go command that runs this test binary.

package redistest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// goCommandStderr returns the standard error of the go command. It returns nil if the parent is not
// the go command, or if its standard error cannot be shared. A plain file cannot be shared: it is
// opened a second time here, and each writer would overwrite what the other has written at the same
// position.
func goCommandStderr() *os.File {
	parent := fmt.Sprintf("/proc/%d", os.Getppid())
	comm, err := os.ReadFile(parent + "/comm")
	if err != nil || strings.TrimSpace(string(comm)) != "go" {
		return nil
	}
	info, err := os.Stat(parent + "/fd/2")
	if err != nil || info.Mode().IsRegular() && !appends(parent+"/fdinfo/2") {
		return nil
	}
	// Without O_NONBLOCK the open of a pipe whose reader is gone would hang.
	w, err := os.OpenFile(parent+"/fd/2", os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return w
}

// appends reads the open flags, in octal, of a descriptor's fdinfo.
func appends(fdinfo string) bool {
	text, err := os.ReadFile(fdinfo)
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		if octal, ok := strings.CutPrefix(line, "flags:"); ok {
			flags, err := strconv.ParseInt(strings.TrimSpace(octal), 8, 64)
			return err == nil && flags&syscall.O_APPEND != 0
		}
	}
	return false
}
