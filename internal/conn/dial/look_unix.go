//go:build unix

package dial

import "syscall"

const canLook = true

// readNow reads what has come on the socket. If nothing has, it returns an error at once.
func readNow(socket uintptr, b []byte) (int, error) { return syscall.Read(int(socket), b) }
