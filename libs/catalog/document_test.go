package catalog_test

import (
	"encoding/json"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
)

// TestPackageDigest proves that the short way to a package's canonical form and digest comes to what
// encoding and ordering the whole of it comes to (DESIGN, settled details: Digests).
func TestPackageDigest(t *testing.T) {
	t.Parallel()
	value := func(s string) json.RawMessage { return json.RawMessage(s) }
	for name, p := range map[string]catalog.Package{
		"empty": {},
		"full": {
			Name: "a1", Description: `12 "3" \ 4 <é>`, Icon: &catalog.Icon{Data: []byte{1, 2}, MediaType: "image/png"},
			Properties: []catalog.Property{
				{Type: "1", Value: value(`{"b":1.0,"a":[1,{"d":2,"c":"7"}]}`)},
				{Type: "none"},
			},
			Channels: []catalog.Channel{{
				Name: "9", Entries: []catalog.Entry{{Name: "x", Skips: []string{"1", `\`}}},
				Properties: []catalog.Property{{Type: "t", Value: value(`9007199254740993`)}},
			}},
			Bundles: []catalog.Bundle{
				{
					Name: "b", Version: "1.0.0", Properties: []catalog.Property{},
					Metadata: value(`{"z":"<","y":null}`), RelatedImages: []catalog.RelatedImage{{Image: "1"}},
				},
				{Name: "c", Metadata: value(`{}`)},
			},
		},
	} {
		want, err1 := digest.Canonical(p)
		got, err2 := p.Canonical()
		if err1 != nil || err2 != nil || string(got) != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s\n%v, %v", name, got, want, err2, err1)
		}
		d1, err1 := digest.JSON(catalog.PackageType, p)
		d2, err2 := p.Digest()
		if err1 != nil || err2 != nil || d1 != d2 {
			t.Errorf("%s: digest %s, want %s, %v, %v", name, d2, d1, err2, err1)
		}
	}
	if _, err := (catalog.Package{Properties: []catalog.Property{
		{Type: "t", Value: value(`1e999`)},
	}}).Digest(); err == nil {
		t.Error("a number without a canonical form has a digest")
	}
}
