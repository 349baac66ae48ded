package child

import "syscall"

// attributes makes the program lead a process group, in the foreground of the terminal if there is one, and
// end by SIGKILL if this process is killed.
func attributes(t *terminal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if t != nil && t.alone && t.has(t.own) {
		a.Foreground, a.Ctty = true, t.fd
	}
	return a
}
