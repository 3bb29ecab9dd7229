package pglocal

import "syscall"

// linux has /proc and a signal at the death of a parent.
const linux = true

// endWithUs asks the kernel to interrupt the process, which is PostgreSQL's fast shutdown, when we end.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }
