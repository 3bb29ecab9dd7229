//go:build race

package author_test

// share is how many times less of the real catalogs is taken under the race detector, which makes decoding
// an order of magnitude slower.
const share = 5
