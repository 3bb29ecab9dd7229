//go:build !race

package crd_test

// all pairs are compared.
const all = true
