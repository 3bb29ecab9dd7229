//go:build race

package author_test

import (
	"hash/fnv"
	"strings"
)

// some takes one package of twelve: under the race detector all would take minutes and show no more.
func some(path string) bool {
	const share = 12
	parts := strings.Split(path, "/")
	h := fnv.New32()
	_, _ = h.Write([]byte(strings.Join(parts[:min(len(parts)-1, 3)], "/"))) // never fails
	return h.Sum32()%share == 0
}
