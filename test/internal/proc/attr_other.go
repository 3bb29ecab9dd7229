//go:build unix && !linux

package proc

import "syscall"

// attributes put a process into its own group. There is no death signal here: the next start reaps what was left
// behind.
func attributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
