package validate

import (
	"slices"
	"strconv"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/internal/value"
)

// Drafts is what a catalog states of one package: its blobs, decoded one by one, before anything is known of the
// others. They keep their places, so that a finding about two of them can name both.
type Drafts struct {
	Name         string
	Packages     []*PackageDraft
	Channels     []*ChannelDraft
	Bundles      []*BundleDraft
	Deprecations []*DeprecationsDraft
	Findings     []catalog.Finding
	Severity     catalog.Severity // of what is wrong with the graph
	Properties   value.Properties
}

// Reportf notes what is wrong with the package.
func (g *Drafts) Reportf(at Place, s catalog.Severity, rule, format string, args ...any) {
	g.Findings = append(g.Findings, at.Finding(s, rule, g.Name, format, args...))
}

// PackageDraft is an olm.package.
type PackageDraft struct {
	Place
	Body struct {
		Name           string             `json:"name"`
		DefaultChannel string             `json:"defaultChannel"`
		Description    string             `json:"description"`
		Icon           *IconDraft         `json:"icon"`
		Properties     []catalog.Property `json:"properties"`
	}
}

// IconDraft keeps the data as text: icons that are not base64 are accepted (R-CAT-41).
type IconDraft struct {
	Data      string `json:"base64data"`
	MediaType string `json:"mediatype"`
}

// ChannelDraft is an olm.channel.
type ChannelDraft struct {
	Place
	Package string
	Body    catalog.Channel
	Entries []Place // of Body.Entries
}

// BundleDraft is an olm.bundle, or a bundle directory.
type BundleDraft struct {
	Place
	Package  string
	Bundle   catalog.Bundle
	Embedded bool // manifests stood in the blob or its directory
	CSV      *CSVFacts
	Dir      string // the bundle directory that it was read from
	Packaged bool   // by a package manifest, beside its directory
	// Joins and Preferred are the channels that a bundle directory's annotations name (R-CAT-55).
	Joins     []string
	Preferred string
}

// CSVFacts is what a package is made of beside the bundles themselves (R-GRA-3, R-CAT-55). The CSV is
// let go: all of them together would be most of the catalog.
type CSVFacts struct {
	Replaces, SkipRange, Description string
	Skips                            []string
	Icon                             *IconDraft
}

// DeprecationsDraft is an olm.deprecations.
type DeprecationsDraft struct {
	Place
	Package   string
	Entries   []catalog.Deprecation
	EntriesAt []Place
}

// PlaceOf is the place of a value of the bundle: a path in its document, or a key of the CSV in its directory.
func (d *BundleDraft) PlaceOf(key string, path ...string) Place {
	if d.Dir != "" {
		return d.In(key)
	}
	return d.In(path...)
}

// IdentityAt is the place of a field of the bundle's olm.package.
func (d *BundleDraft) IdentityAt(field string) Place {
	return d.PlaceOf(field, "properties", catalog.TypePackage+"#0", "value", field)
}

// EdgeAt is the place of a field of an entry: in its document, or in the CSV that the entry was made of.
func (c *ChannelDraft) EdgeAt(i int, path ...string) Place {
	if at := c.Entries[i]; at.Line == 0 {
		if path[0] == "skipRange" {
			return at.In("olm.skipRange")
		}
		return at.In(path[0])
	}
	return c.In(append([]string{"entries", "#" + strconv.Itoa(i)}, path...)...)
}

// EntryAt is where an entry of the channel stands.
func (c *ChannelDraft) EntryAt(name string) Place {
	i := slices.IndexFunc(c.Body.Entries, func(e catalog.Entry) bool { return e.Name == name })
	if i < 0 {
		return c.Place
	}
	return c.Entries[i]
}
