package view

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// cardsOf returns the tiles of packages, by digest. What is not in memory is read in one query; a package
// that was stored before tiles were is read whole.
func (c *Content) cardsOf(ctx context.Context, q pg.Querier, tenant string, refs []packageRef) (map[string]*display.Card, error) {
	out := make(map[string]*display.Card, len(refs))
	var missing []string
	for _, ref := range refs {
		if _, ok := out[ref.digest]; ok {
			continue
		}
		card, ok := c.cards.get(ref.digest)
		if !ok {
			missing = append(missing, ref.digest)
		}
		out[ref.digest] = card
	}
	if len(missing) == 0 {
		return out, nil
	}
	rows, err := q.Query(ctx, `select digest, card from catalog_api.package_cards where tenant = $1 and digest = any ($2)`, tenant, missing)
	if err != nil {
		return nil, err
	}
	var digest string
	var raw []byte
	_, err = pgx.ForEachRow(rows, []any{&digest, &raw}, func() error {
		card := new(display.Card)
		if err := json.Unmarshal(raw, card); err != nil {
			return errs.Wrap(errs.Internal, err, "read the tile of package document %s", digest)
		}
		out[digest] = card
		c.cards.put(digest, card)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, digest := range missing {
		if out[digest] != nil {
			continue
		}
		p, err := c.document(ctx, q, tenant, digest)
		if err != nil {
			return nil, err
		}
		card, _ := display.Of(p)
		out[digest] = &card
		c.cards.put(digest, &card)
	}
	return out, nil
}

// packagesOf are the packages of a revision by name. A revision never changes.
func (c *Content) packagesOf(ctx context.Context, q pg.Querier, tenant, revision string) ([]packageRef, error) {
	// Revisions are addressed by content, but what a tenant may see is asked for once with its own rights.
	key := tenant + "/" + revision
	if refs, ok := c.revisions.get(key); ok {
		return refs, nil
	}
	rows, err := q.Query(ctx, `select package, digest from catalog_api.revision_packages where tenant = $1 and revision = $2 order by package`, tenant, revision)
	if err != nil {
		return nil, err
	}
	refs, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (packageRef, error) { return scanPackageRef(r) })
	if err == nil && len(refs) > 0 {
		c.revisions.put(key, refs)
	}
	return refs, err
}

func summaryOf(c *display.Card, digest string) model.PackageSummary {
	return model.PackageSummary{
		Name: c.Package, Digest: digest, DisplayName: c.DisplayName, Description: c.Summary, Provider: c.Provider, ProviderURL: c.ProviderURL,
		Categories: c.Categories, Keywords: c.Keywords, Capability: c.Capability, Features: c.Features, InstallModes: c.InstallModes, Labels: c.Labels,
		DefaultChannel: c.DefaultChannel, CSV: c.CSV, Version: c.Version, MinKubeVersion: c.MinKube,
		Channels: c.Channels, Bundles: c.Bundles, Deprecated: c.Deprecated, HasIcon: c.Icon,
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
		d := model.ChannelDetail{Current: describe(head), EntryList: []model.ChannelEntry{}, ChannelSummary: model.ChannelSummary{
			Name: ch.Name, Heads: libcatalog.Heads(ch), CurrentCSV: head.Name, Version: head.Version,
			Deprecated: display.Deprecation(p, "olm.channel", ch.Name),
		}}
		for _, b := range display.Entries(p, ch) {
			d.EntryList = append(d.EntryList, model.ChannelEntry{Name: b.Name, Version: b.Version, Deprecated: display.Deprecation(p, "olm.bundle", b.Name)})
		}
		d.Entries = len(d.EntryList)
		out = append(out, d)
	}
	return out
}

// describe is what a bundle says of itself.
func describe(b libcatalog.Bundle) *model.CSVDescription {
	m := display.Read(b)
	d := &model.CSVDescription{
		DisplayName: m.DisplayName, Version: b.Version, Description: m.Description, Provider: m.Provider, Keywords: m.Keywords,
		Links: m.Links, Maintainers: m.Maintainers, Maturity: m.Maturity, MinKubeVersion: m.MinKube, Capability: m.Capability(),
		Categories: m.Categories(), Features: m.Features(), InstallModes: m.InstallModes, Annotations: m.Annotations, Labels: m.Labels,
		CRDs: m.CRDs, APIServices: m.APIServices, NativeAPIs: m.NativeAPIs,
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
			Name: b.Name, Package: p.Name, Version: b.Version, Release: b.Release, Image: b.Image, Content: string(b.Content),
			Channels: append([]string{}, in[b.Name]...), Deprecated: display.Deprecation(p, "olm.bundle", b.Name), Metadata: b.Metadata,
		})
	}
	return out
}
