// Package foreign makes text of others fit to stand in our errors: these are stored, compared and shown,
// so they are valid, short, and the same each time.
package foreign

import (
	"regexp"
	"strings"
)

// maxText bounds a text; the longest honest ones, of certificates, have some 200 bytes.
const maxText = 500

// way is how the network package begins an error: addresses and ports, which differ each time.
var way = regexp.MustCompile(`(?:dial|read|write) (?:tcp|udp|unix)[46]? \S+: `)

// Text returns a text without the addresses of a connection, cut to a bound.
func Text(s string) string {
	s = way.ReplaceAllString(strings.ToValidUTF8(s, "�"), "")
	if len(s) > maxText {
		s = strings.ToValidUTF8(s[:maxText], "") + " …"
	}
	return s
}
