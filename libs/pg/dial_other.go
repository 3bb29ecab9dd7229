//go:build !linux

package pg

import "syscall"

// control does nothing: keep-alives and deadlines remain.
func control(_, _ string, _ syscall.RawConn) error { return nil }
