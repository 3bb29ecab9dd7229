package template

import (
	"context"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// stream is one of the lists of a semver template.
type stream struct {
	Bundles []struct {
		Image string `json:"image"`
	} `json:"bundles"`
}

// The kinds of channels.
const (
	major = "major"
	minor = "minor"
)

// semverTemplate is olm.semver (R-CAT-81).
type semverTemplate struct {
	Schema     string `json:"schema"`
	Major      bool   `json:"generateMajorChannels"`
	Minor      bool   `json:"generateMinorChannels"`
	Preference string `json:"defaultChannelTypePreference"`
	Candidate  stream `json:"candidate"`
	Fast       stream `json:"fast"`
	Stable     stream `json:"stable"`
}

// archetype is a list with its name, read.
type archetype struct {
	name     string
	releases []release // by version, lowest first
}

type release struct {
	version semver.Version
	bundle  Bundle
}

func (r release) sameMinor(o release) bool {
	return r.version.Major == o.version.Major && r.version.Minor == o.version.Minor
}

func expandSemver(ctx context.Context, text []byte, r *renderer) ([]fbc.Blob, error) {
	var t semverTemplate
	if err := decode(text, Semver, &t); err != nil {
		return nil, err
	}
	if !t.Major && !t.Minor {
		t.Minor = true
	}
	switch t.Preference {
	case "":
		t.Preference = minor
	case major, minor:
	default:
		return nil, errs.New(errs.Invalid, "defaultChannelTypePreference is %q; it must be %s or %s", t.Preference,
			minor, major).At("/defaultChannelTypePreference", "R-CAT-81")
	}
	all, err := t.read(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := agree(all); err != nil {
		return nil, err
	}
	return t.write(all)
}

// read renders the bundles of every list, from the most stable to the least.
func (t semverTemplate) read(ctx context.Context, r *renderer) ([]archetype, error) {
	var out []archetype
	for _, s := range []struct {
		name string
		stream
	}{{"stable", t.Stable}, {"fast", t.Fast}, {"candidate", t.Candidate}} {
		a := archetype{name: s.name}
		seen := map[string]bool{}
		for i, b := range s.Bundles {
			at := fmt.Sprintf("/%s/bundles/%d/image", s.name, i)
			switch {
			case b.Image == "":
				return nil, errs.New(errs.Invalid, "bundle %d of %s names no image", i+1, s.name).At(at, "R-CAT-81")
			case seen[b.Image]:
				return nil, errs.New(errs.Invalid, "image %s stands twice in %s", b.Image, s.name).At(at, "R-CAT-81")
			}
			seen[b.Image] = true
			bundle, err := r.get(ctx, b.Image)
			if err != nil {
				return nil, err
			}
			v, err := semver.Parse(bundle.Version)
			if err != nil {
				return nil, errs.New(errs.Invalid, "version %q of %s is no semantic version: %v", bundle.Version,
					b.Image, err).At(at, "R-CAT-26")
			}
			a.releases = append(a.releases, release{v, bundle})
		}
		slices.SortFunc(a.releases, func(x, y release) int { return x.version.Compare(y.version) })
		if len(a.releases) > 0 {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil, errs.New(errs.Invalid,
			"the template names no bundle; list some under candidate, fast or stable").At("", "R-CAT-81")
	}
	return out, nil
}

// agree refuses bundles of several packages, and versions that nothing orders.
func agree(all []archetype) error {
	first := all[0].releases[0].bundle
	versions := map[string]Bundle{} // by version without build metadata
	for _, a := range all {
		for _, r := range a.releases {
			if r.bundle.Package != first.Package {
				return errs.New(errs.Invalid,
					"bundles of different packages in one template: %s is of %s, %s is of %s; keep a template for "+
						"each package",
					first.Name, first.Package, r.bundle.Name, r.bundle.Package).At("", "R-CAT-81")
			}
			bare := r.version
			bare.Build = nil
			other, there := versions[bare.String()]
			switch {
			case there && other.Name == r.bundle.Name && other.Version == r.bundle.Version:
			case there && other.Version != r.bundle.Version:
				return errs.New(errs.Invalid,
					"versions %s and %s differ in build metadata alone, which gives them no order; raise one of them",
					other.Version, r.bundle.Version).At("", "R-CAT-81")
			case there:
				return errs.New(errs.Invalid, "bundles %s and %s have the same version %s", other.Name, r.bundle.Name,
					other.Version).At("", "R-CAT-34")
			}
			versions[bare.String()] = r.bundle
		}
	}
	return nil
}

func (t semverTemplate) write(all []archetype) ([]fbc.Blob, error) {
	pkg := all[0].releases[0].bundle.Package
	p := catalog.Package{Name: pkg}
	for _, a := range all {
		p.Channels = append(p.Channels, t.channels(a)...)
	}
	p.DefaultChannel = t.defaultChannel(all[0])
	out, err := fbc.FromPackage(p, nil)
	if err != nil {
		return nil, err
	}
	written := map[string]bool{}
	for _, a := range all {
		for _, r := range a.releases {
			if !written[r.bundle.Name] {
				written[r.bundle.Name] = true
				out = append(out, r.bundle.Blob)
			}
		}
	}
	return out, nil
}

// channels makes the channels of an archetype. In each stream of a minor version the highest release
// skips all others and replaces the highest of the minor version before; nothing crosses a major version.
func (t semverTemplate) channels(a archetype) []catalog.Channel {
	var out []catalog.Channel
	into := func(name string, e catalog.Entry) {
		i := slices.IndexFunc(out, func(c catalog.Channel) bool { return c.Name == name })
		if i < 0 {
			i = len(out)
			out = append(out, catalog.Channel{Name: name})
		}
		out[i].Entries = append(out[i].Entries, e)
	}
	var skips []string
	var before *release // the highest release of the minor version before, of the same major version
	for i, r := range a.releases {
		e := catalog.Entry{Name: r.bundle.Name}
		highest := i+1 == len(a.releases) || !r.sameMinor(a.releases[i+1])
		if highest {
			e.Skips, skips = skips, nil
			if before != nil && before.version.Major == r.version.Major {
				e.Replaces = before.bundle.Name
			}
			before = &a.releases[i]
		} else {
			skips = append(skips, r.bundle.Name)
		}
		if t.Major {
			into(channelName(a.name, major, r.version), e)
		}
		if t.Minor {
			into(channelName(a.name, minor, r.version), e)
		}
	}
	return out
}

func channelName(archetype, kind string, v semver.Version) string {
	if kind == major {
		return fmt.Sprintf("%s-v%d", archetype, v.Major)
	}
	return fmt.Sprintf("%s-v%d.%d", archetype, v.Major, v.Minor)
}

// defaultChannel is that of the highest version of the most stable archetype, of the preferred kind if
// there are channels of it.
func (t semverTemplate) defaultChannel(a archetype) string {
	kind := t.Preference
	if kind == major && !t.Major {
		kind = minor
	}
	if kind == minor && !t.Minor {
		kind = major
	}
	return channelName(a.name, kind, a.releases[len(a.releases)-1].version)
}
