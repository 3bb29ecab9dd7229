package browse

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func summaryOf(c *display.Card, digest string) model.PackageSummary {
	return model.PackageSummary{
		Name: c.Package, Digest: digest, DisplayName: c.DisplayName, Description: c.Summary, Provider: c.Provider,
		ProviderURL: c.ProviderURL, Categories: c.Categories, Keywords: c.Keywords, Capability: c.Capability,
		Features: c.Features, InstallModes: c.InstallModes, Labels: c.Labels, DefaultChannel: c.DefaultChannel,
		CSV: c.CSV, Version: c.Version, MinKubeVersion: c.MinKube, Channels: c.Channels, Bundles: c.Bundles,
		Deprecated: c.Deprecated, HasIcon: c.Icon,
	}
}

// channelsOf describes the channels of a package. One without a version that can be shown is left out (R-CAT-108).
func channelsOf(p *libcatalog.Package) []model.ChannelDetail {
	out := make([]model.ChannelDetail, 0, len(p.Channels))
	for _, ch := range p.Channels {
		head, ok := display.Head(p, ch)
		if !ok {
			continue
		}
		d := model.ChannelDetail{
			Current: describe(head), EntryList: []model.ChannelEntry{},
			ChannelSummary: model.ChannelSummary{
				Name: ch.Name, Heads: libcatalog.Heads(ch), CurrentCSV: head.Name, Version: head.Version,
				Deprecated: display.Deprecation(p, "olm.channel", ch.Name),
			},
		}
		for _, b := range display.Entries(p, ch) {
			d.EntryList = append(d.EntryList, model.ChannelEntry{
				Name: b.Name, Version: b.Version, Deprecated: display.Deprecation(p, "olm.bundle", b.Name),
			})
		}
		d.Entries = len(d.EntryList)
		out = append(out, d)
	}
	return out
}

// describe is how a bundle describes itself.
func describe(b libcatalog.Bundle) *model.CSVDescription {
	m := display.Read(b)
	d := &model.CSVDescription{
		DisplayName: m.DisplayName, Version: b.Version, Description: m.Description, Provider: m.Provider,
		Keywords: m.Keywords, Links: m.Links, Maintainers: m.Maintainers, Maturity: m.Maturity,
		MinKubeVersion: m.MinKube, Capability: m.Capability(), Categories: m.Categories(), Features: m.Features(),
		InstallModes: m.InstallModes, Annotations: m.Annotations, Labels: m.Labels, CRDs: m.CRDs,
		APIServices: m.APIServices, NativeAPIs: m.NativeAPIs,
	}
	for _, image := range b.RelatedImages {
		d.RelatedImages = append(d.RelatedImages, image.Image)
	}
	return d
}

// bundlesOf describes the bundles of a package, of one channel if it is given. Those that carry
// olm.deprecated are not shown (R-CAT-108).
func bundlesOf(p *libcatalog.Package, channel string) []model.BundleSummary {
	in := map[string][]string{}
	for _, ch := range p.Channels {
		for _, e := range ch.Entries {
			if channel == "" || channel == ch.Name {
				in[e.Name] = append(in[e.Name], ch.Name)
			}
		}
	}
	out := make([]model.BundleSummary, 0, len(p.Bundles))
	for _, b := range p.Bundles {
		if b.Deprecated() || channel != "" && in[b.Name] == nil {
			continue
		}
		out = append(out, model.BundleSummary{
			Name: b.Name, Package: p.Name, Version: b.Version, Release: b.Release, Image: b.Image,
			Content: string(b.Content), Channels: append([]string{}, in[b.Name]...),
			Deprecated: display.Deprecation(p, "olm.bundle",
				b.Name), Metadata: b.Metadata,
		})
	}
	return out
}

// defaultIcon is shown for packages that have none: a box.
const defaultIcon = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><path fill="#6a6e73" d="M32 4 6 18v28l26 14 26-14V18zm0 6.8L49.6 20 32 29.4 14.4 20zM11 24.6l18.5 10v18L11 42.700zm24.500 28v-18L53 24.600v18.100z"/></svg>`

// iconTypes are the forms that pictures may have. Whatever else an author writes is given out as bytes that
// no browser shows.
var iconTypes = []string{"image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp"}

// unknownIcon is what is said of bytes in another form.
const unknownIcon = "application/octet-stream"

// IconTypes are the media types that the icon of a package may have.
func IconTypes() []string { return append([]string{unknownIcon}, iconTypes...) }

func iconOf(p *libcatalog.Package) model.PackageIcon {
	icon := model.PackageIcon{Data: []byte(defaultIcon), MediaType: "image/svg+xml"}
	if p.Icon != nil && len(p.Icon.Data) > 0 {
		icon.Data, icon.MediaType = p.Icon.Data, p.Icon.MediaType
		if !slices.Contains(iconTypes, icon.MediaType) {
			icon.MediaType = unknownIcon
		}
	}
	sum := sha256.Sum256(append([]byte(icon.MediaType+"\x00"), icon.Data...))
	icon.ETag = `"` + hex.EncodeToString(sum[:16]) + `"`
	return icon
}
