//go:build !race

package render_test

// oneOf: every bundle is taken; see race_test.go.
const oneOf = 1
