//go:build !race

package fbc_test

// some takes every file.
func some(string) bool { return true }
