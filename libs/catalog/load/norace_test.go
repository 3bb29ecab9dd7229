//go:build !race

package load_test

// sampled takes every file.
func sampled(string) bool { return true }

// raceFactor: without the race detector bounds hold as they are.
const raceFactor = 1
