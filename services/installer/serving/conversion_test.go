package serving_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/services/installer/serving"
)

// TestKeep: R-CSV-46: the rows of Keep, and a stored version that the next form does not have.
func TestKeep(t *testing.T) {
	t.Parallel()
	form := func(webhook bool, stored string, served ...string) serving.Definition {
		return serving.Definition{
			Webhook: webhook, Versions: append([]string{"v0"}, served...), Served: served,
			Stored: stored,
		}
	}
	one := func(webhook bool) serving.Definition { return form(webhook, "v1", "v1") }
	two := func(webhook bool) serving.Definition { return form(webhook, "v2", "v1", "v2") }
	for name, c := range map[string]struct {
		live, next serving.Definition
		want       serving.Kept
	}{
		"by name to by name":                   {one(false), two(false), serving.Kept{}},
		"webhook to webhook":                   {two(true), two(true), serving.Kept{Conversion: true, Stored: true}},
		"webhook to webhook, a version is new": {one(true), two(true), serving.Kept{Conversion: true, Stored: true}},
		"by name to webhook": {
			form(false, "v1", "v1", "v2"), two(true),
			serving.Kept{Conversion: true, Stored: true},
		},
		"by name to webhook, one is served less": {two(false), one(true), serving.Kept{Conversion: true}},
		"by name to webhook, a version is new":   {one(false), two(true), serving.Kept{Stored: true}},
		"webhook to by name": {
			form(true, "v1", "v1", "v2"), two(false),
			serving.Kept{Conversion: true, Stored: true},
		},
		"webhook to by name, a version is new": {one(true), two(false), serving.Kept{}},
		"a version is new that was not served": {
			form(false, "v1", "v1"), form(true, "v0", "v0", "v1"),
			serving.Kept{Stored: true},
		},
		"the stored version is not served now": {
			form(true, "v0", "v1"), two(true),
			serving.Kept{Conversion: true, Stored: true},
		},
		"the stored version is none of the next": {form(true, "v9", "v1"), two(true), serving.Kept{Conversion: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := serving.Keep(c.live, c.next); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}
