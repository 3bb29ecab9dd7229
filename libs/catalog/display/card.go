package display

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
)

// Limits of what a card holds: enough for a line on a screen and for facets. A card is kept in memory for
// each package that is offered, so that an author's essay must not grow it.
const (
	maxSummary = 300
	maxName    = 200
	maxWords   = 24
)

// Card is one package in a list: what its tile shows, what it is filtered by. It tells of the head of the
// default channel.
type Card struct {
	Package        string   `json:"package"`
	DisplayName    string   `json:"displayName,omitempty"`
	Summary        string   `json:"summary,omitempty"`
	Provider       string   `json:"provider,omitempty"`
	ProviderURL    string   `json:"providerURL,omitempty"`
	Categories     []string `json:"categories,omitempty"`
	Keywords       []string `json:"keywords,omitempty"`
	Capability     string   `json:"capability,omitempty"`
	Features       []string `json:"features,omitempty"`
	InstallModes   []string `json:"installModes,omitempty"`
	DefaultChannel string   `json:"defaultChannel,omitempty"`
	CSV            string   `json:"csv,omitempty"`
	Version        string   `json:"version,omitempty"`
	MinKube        string   `json:"minKubeVersion,omitempty"`
	Channels       int      `json:"channels"`
	Bundles        int      `json:"bundles"`
	Deprecated     string   `json:"deprecated,omitempty"`
	Icon           bool     `json:"icon,omitempty"`
	// Labels of the CSV, which lists are filtered by (R-CAT-107), such as those of processor architectures.
	Labels map[string]string `json:"labels,omitempty"`
}

// Of makes the card of a package, and returns what the head of its default channel says of itself.
func Of(p *catalog.Package) (Card, Metadata) {
	var m Metadata
	c := Card{
		Package: p.Name, DefaultChannel: p.DefaultChannel, Channels: len(p.Channels), Bundles: len(p.Bundles),
		Deprecated: Deprecation(p, "olm.package", ""), Icon: p.Icon != nil && len(p.Icon.Data) > 0,
	}
	if ch, ok := p.Channel(p.DefaultChannel); ok {
		if head, ok := Head(p, ch); ok {
			m = Read(head)
			c.CSV, c.Version = head.Name, head.Version
		}
	}
	c.DisplayName, c.Summary = cut(m.DisplayName, maxName), cut(m.Summary(), maxSummary)
	if c.Summary == "" {
		c.Summary = cut(firstLine(p.Description), maxSummary)
	}
	c.Provider, c.ProviderURL = cut(m.Provider.Name, maxName), cut(m.Provider.URL, maxName)
	c.Categories, c.Keywords = few(m.Categories()), few(words(m.Keywords))
	c.Capability, c.Features, c.InstallModes, c.MinKube = m.Capability(), few(m.Features()), few(m.Modes()),
		cut(m.MinKube, maxName)
	for _, key := range few(slices.Sorted(maps.Keys(m.Labels))) {
		if c.Labels == nil {
			c.Labels = map[string]string{}
		}
		c.Labels[key] = cut(m.Labels[key], maxName)
	}
	return c, m
}

// Deprecation is the message for an element of a package, "" where it is not deprecated (R-CAT-13).
func Deprecation(p *catalog.Package, schema, name string) string {
	for _, d := range p.Deprecations {
		if d.Schema == schema && (d.Name == name || schema == "olm.package") {
			return d.Message
		}
	}
	return ""
}

// Entries are the bundles of a channel, newest version first, without those that carry olm.deprecated (R-CAT-108).
func Entries(p *catalog.Package, ch catalog.Channel) []catalog.Bundle {
	named := make(map[string]int, len(p.Bundles))
	for i := range p.Bundles {
		named[p.Bundles[i].Name] = i
	}
	out := make([]catalog.Bundle, 0, len(ch.Entries))
	for _, e := range ch.Entries {
		if i, ok := named[e.Name]; ok && !p.Bundles[i].Deprecated() {
			out = append(out, p.Bundles[i])
		}
	}
	slices.SortStableFunc(out, newest)
	return out
}

// newest orders by version and release, descending; what is no version comes last, by name.
func newest(a, b catalog.Bundle) int {
	x, errX := semver.ParseTolerant(a.Version)
	y, errY := semver.ParseTolerant(b.Version)
	switch {
	case errX != nil && errY != nil:
		return cmp.Compare(a.Name, b.Name)
	case errX != nil:
		return 1
	case errY != nil:
		return -1
	}
	return cmp.Or(y.Compare(x), cmp.Compare(len(b.Release), len(a.Release)), cmp.Compare(b.Release, a.Release),
		cmp.Compare(a.Name, b.Name))
}

// Head is the bundle that a channel leads to (R-GRA): its one head, or where that is not to be shown or the
// graph has none, the newest that is. It returns false where the channel shows nothing.
func Head(p *catalog.Package, ch catalog.Channel) (catalog.Bundle, bool) {
	if heads := catalog.Heads(ch); len(heads) == 1 {
		if b, ok := p.Bundle(heads[0]); ok && !b.Deprecated() {
			return b, true
		}
	}
	list := Entries(p, ch)
	if len(list) == 0 {
		return catalog.Bundle{}, false
	}
	return list[0], true
}

func few(list []string) []string {
	out := make([]string, 0, min(len(list), maxWords))
	for _, w := range list[:min(len(list), maxWords)] {
		out = append(out, cut(w, maxName))
	}
	return out
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimLeft(line, "# ")
}

// cut shortens at a whole character, and drops NUL, which databases do not take in text.
func cut(s string, most int) string {
	s = strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", ""))
	if len(s) <= most {
		return s
	}
	s = s[:most-len("…")]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}
