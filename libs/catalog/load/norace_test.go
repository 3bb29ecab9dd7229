//go:build !race

package load_test

// raceFactor: without the race detector bounds hold as they are.
const raceFactor = 1
