//go:build linux

// A terminal for questions, as Linux makes one.

package operators

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-go/holdfast/internal/test/redistest"
)

// terminal returns a terminal, and the file whose bytes are typed there.
func terminal(t *testing.T) (tty, keyboard *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no terminals here: %v", err)
	}
	t.Cleanup(func() { keyboard.Close() })
	fd := int(keyboard.Fd())
	redistest.Must(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	redistest.Must(t, err)
	tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	redistest.Must(t, err)
	t.Cleanup(func() { tty.Close() })
	return tty, keyboard
}
