//go:build unix && !linux

package pglocal

// memory is a directory in memory; none is known here.
func memory() string { return "" }
