package certs_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/executor/internal/certs"
)

// TestKeep: R-CSV-46: the rows of Keep, and a stored version that the next form does not have.
func TestKeep(t *testing.T) {
	t.Parallel()
	form := func(webhook bool, stored string, served ...string) certs.Definition {
		return certs.Definition{
			Webhook: webhook, Versions: append([]string{"v0"}, served...), Served: served,
			Stored: stored,
		}
	}
	one := func(webhook bool) certs.Definition { return form(webhook, "v1", "v1") }
	two := func(webhook bool) certs.Definition { return form(webhook, "v2", "v1", "v2") }
	for name, c := range map[string]struct {
		live, next certs.Definition
		want       certs.KeptForm
	}{
		"by name to by name":                   {one(false), two(false), certs.KeptForm{}},
		"webhook to webhook":                   {two(true), two(true), certs.KeptForm{Conversion: true, Stored: true}},
		"webhook to webhook, a version is new": {one(true), two(true), certs.KeptForm{Conversion: true, Stored: true}},
		"by name to webhook": {
			form(false, "v1", "v1", "v2"), two(true),
			certs.KeptForm{Conversion: true, Stored: true},
		},
		"by name to webhook, one is served less": {two(false), one(true), certs.KeptForm{Conversion: true}},
		"by name to webhook, a version is new":   {one(false), two(true), certs.KeptForm{Stored: true}},
		"webhook to by name": {
			form(true, "v1", "v1", "v2"), two(false),
			certs.KeptForm{Conversion: true, Stored: true},
		},
		"webhook to by name, a version is new": {one(true), two(false), certs.KeptForm{}},
		"a version is new that was not served": {
			form(false, "v1", "v1"), form(true, "v0", "v0", "v1"),
			certs.KeptForm{Stored: true},
		},
		"the stored version is not served now": {
			form(true, "v0", "v1"), two(true),
			certs.KeptForm{Conversion: true, Stored: true},
		},
		"the stored version is none of the next": {form(true, "v9", "v1"), two(true), certs.KeptForm{Conversion: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := certs.Keep(c.live, c.next); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
