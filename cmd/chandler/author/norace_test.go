//go:build !race

package author_test

// some takes every file.
func some(string) bool { return true }
