package reach_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/reach"
)

// What is answered by whoever sits in between, or opened by another program than a browser, is no safe address.
func TestSafeURL(t *testing.T) {
	t.Parallel()
	for given, safe := range map[string]bool{
		"https://login.example.org":          true,
		"https://login.example.org/a?b=c":    true,
		"http://127.0.0.1:8080/a":            true,
		"http://[::1]/a":                     true,
		"http://localhost/a":                 true,
		"http://login.example.org":           false,
		"http://127.0.0.1.example.org":       false,
		"http://127.0.0.1@login.example.org": false,
		"file:///etc/passwd":                 false,
		"file://127.0.0.1/etc/passwd":        false,
		"ms-settings:network":                false,
		"javascript:alert(1)":                false,
		"https://":                           false,
		"":                                   false,
	} {
		if err := reach.SafeURL(given); err == nil != safe {
			t.Errorf("%q: %v, want safe %t", given, err, safe)
		}
	}
}
