//go:build !race

package compare_test

// all pairs are compared.
const all = true
