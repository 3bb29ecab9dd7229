// Package errtext cleans text of other programs for our error messages: these are stored, compared and shown,
// so they are valid UTF-8, short, and the same each time.
package errtext

import (
	"regexp"
	"strings"
)

// maxText bounds a text; the longest honest ones, of certificates, have some 200 bytes.
const maxText = 500

// way is how the network package begins an error: addresses and ports, which differ each time.
var way = regexp.MustCompile(`(?:dial|read|write) (?:tcp|udp|unix)[46]? \S+: `)

// Clean returns a text without the addresses of a connection, cut to a bound.
func Clean(s string) string {
	s = way.ReplaceAllString(strings.ToValidUTF8(s, "�"), "")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + " …"
	}
	return s
}
