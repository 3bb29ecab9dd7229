//go:build !race

package catalog_test

// sampled takes every file.
func sampled(string) bool { return true }

// raceFactor: without the race detector bounds hold as they are.
const raceFactor = 1
