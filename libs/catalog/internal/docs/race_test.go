//go:build race

package docs

// every is the part of real files that tests look at; the race detector is an order of magnitude slower.
const every = 101
