//go:build unix && !linux

package pglocal

import "syscall"

// linux has /proc and a signal at the death of a parent; this system has neither.
const linux = false

// endWithUs can do nothing here: the next Start stops what was left behind.
func endWithUs(*syscall.SysProcAttr) {}
