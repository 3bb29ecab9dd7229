//go:build race

package fbc_test

import "hash/fnv"

// some takes one file of six: under the race detector all would take minutes and show no more.
func some(path string) bool {
	const share = 6
	h := fnv.New32()
	_, _ = h.Write([]byte(path)) // never fails
	return h.Sum32()%share == 0
}
