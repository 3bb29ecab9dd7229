package catalogs

import (
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestCompareVersions: minor versions are ordered by number, and what has none is least.
func TestCompareVersions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"1.9", "1.34", -1}, {"1.34", "1.9", 1}, {"1.34", "1.34", 0}, {"", "1.0", -1}, {"2.0", "1.34", 1}} {
		if got := CompareVersions(c.a, c.b); got != c.want {
			t.Errorf("%q and %q compare as %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

// TestTemplateConditions proves R-CAT-93: whether the template of an image resolved, and which image is used then.
func TestTemplateConditions(t *testing.T) {
	t.Parallel()
	since := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name            string
		status          Status
		template, image string
		message         string // of the image
	}{
		{
			"resolved",
			Status{
				CatalogVariant: model.CatalogVariant{Variant: "1.34", Reference: "registry/fleet:1.34"},
				template:       source.ReasonTemplatesResolved, updated: since,
			},
			"True", "True", "Kubernetes 1.34: registry/fleet:1.34",
		},
		{
			"not resolved, with another image",
			Status{
				CatalogVariant: model.CatalogVariant{Reference: "registry/fleet"}, template: "UnableToResolve",
				templateMessage: "no version", updated: since,
			},
			"False", "True", "registry/fleet",
		},
		{
			"not resolved, without one",
			Status{template: "UnableToResolve", templateMessage: "no version", updated: since},
			"False", "False", "no version",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := templateConditions(c.status)
			if got[0].Status != c.template || got[1].Status != c.image || got[1].Message != c.message ||
				!got[0].Since.Equal(since) {
				t.Errorf("conditions %+v, want %s, %s and %q", got, c.template, c.image, c.message)
			}
		})
	}
}
