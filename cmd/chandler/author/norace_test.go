//go:build !race

package author_test

// share takes all that there is.
const share = 1
