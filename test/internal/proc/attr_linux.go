package proc

import "syscall"

// attributes put a process into its own group, so that Ctrl-C reaches only us, and bind its life to ours.
func attributes(outlive bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if !outlive {
		attr.Pdeathsig = syscall.SIGKILL
	}
	return attr
}
