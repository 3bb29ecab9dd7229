//go:build !race

package docs

// every is the part of real files that tests look at.
const every = 7
