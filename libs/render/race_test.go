//go:build race

package render_test

// oneOf: the race detector makes decoding an order of magnitude slower, so one bundle of so many stands for all.
// `make check` takes every bundle of the install set without it.
const oneOf = 40
