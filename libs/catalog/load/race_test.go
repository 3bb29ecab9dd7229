//go:build race

package load_test

// raceFactor is how much more the race detector may let a load allocate.
const raceFactor = 4
