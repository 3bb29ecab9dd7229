//go:build race

package crd_test

// all: under the race detector two pairs stand for the others, which would take minutes and show no more.
const all = false
