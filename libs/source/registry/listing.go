package registry

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
	"github.com/chandler-fleet/chandler/libs/source/internal/errtext"
)

// listing is what the calls that list said, without documents.
type listing struct {
	packages map[string]*api.Package
	entries  map[place][]catalog.Entry
	sums     [][]byte // of every entry
}

// place is a channel.
type place struct{ pkg, channel string }

// heads asks for all packages with their channels.
func (r *reader) heads(ctx context.Context) (map[string]*api.Package, error) {
	var names []string
	err := stream(ctx, r, r.limits.pkg, r.api.ListPackages, &api.ListPackageRequest{}, func(p *api.PackageName) error {
		if names = append(names, p.GetName()); len(names) > r.limits.packages {
			return errs.New(errs.TooLarge, "catalog server %s names more than %d packages", r.address,
				r.limits.packages).At("address", "registry.MaxPackages")
		}
		return r.remember(p.GetName())
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var mu sync.Mutex
	out := map[string]*api.Package{}
	err = each(ctx, names, func(ctx context.Context, name string) error {
		p, err := ask(ctx, r, r.limits.pkg, r.api.GetPackage, &api.GetPackageRequest{Name: name})
		if err != nil {
			return err
		}
		if p.GetName() != name {
			return r.torn("answered %q when asked for package %q", p.GetName(), name)
		}
		for _, c := range p.GetChannels() {
			if err := r.remember(c.GetName(), c.GetCsvName()); err != nil {
				return err
			}
		}
		mu.Lock()
		defer mu.Unlock()
		out[name] = p
		return r.keep(proto.Size(p))
	})
	return out, err
}

// torn says that the answers do not fit together: the server is changing, or is broken.
func (r *reader) torn(format string, args ...any) error {
	for i, a := range args {
		if text, ok := a.(string); ok { // the server's own words
			args[i] = errtext.Clean(text)
		}
	}
	return errs.Wrap(errs.Unavailable, errs.New(errs.Unavailable, format, args...), "catalog server %s", r.address)
}

// list asks for every entry of packages, normally without manifests, and yields each.
func (r *reader) list(ctx context.Context, packages map[string]*api.Package, take func(*api.Bundle) error) (
	*listing, error,
) {
	l := &listing{packages: packages, entries: map[place][]catalog.Entry{}}
	seen := map[place]map[string]bool{}
	err := stream(ctx, r, r.limits.listed, r.api.ListBundles, &api.ListBundlesRequest{}, func(b *api.Bundle) error {
		if len(l.sums) >= r.limits.entries {
			return errs.New(errs.TooLarge, "catalog server %s lists more than %d channel entries", r.address,
				r.limits.entries).At("address", "registry.MaxEntries")
		}
		names := append([]string{
			b.GetPackageName(), b.GetChannelName(), b.GetCsvName(), b.GetReplaces(),
			b.GetSkipRange(),
		}, b.GetSkips()...)
		if err := r.remember(names...); err != nil {
			return err
		}
		at := place{b.GetPackageName(), b.GetChannelName()}
		if seen[at] == nil {
			seen[at] = map[string]bool{}
		}
		if seen[at][b.GetCsvName()] {
			return r.torn("lists bundle %q twice in channel %q of package %q", b.GetCsvName(), at.channel, at.pkg)
		}
		seen[at][b.GetCsvName()] = true
		sum, err := sumOf(b)
		if err != nil {
			return err
		}
		l.sums = append(l.sums, sum)
		l.entries[at] = append(l.entries[at], catalog.Entry{
			Name: b.GetCsvName(), Replaces: b.GetReplaces(), Skips: b.GetSkips(), SkipRange: b.GetSkipRange(),
		})
		return take(b)
	})
	if err != nil {
		return nil, err
	}
	if err := l.complete(r, seen); err != nil {
		return nil, err
	}
	return l, nil
}

// complete reports what the list of bundles lacks of what the packages say, and the other way round.
func (l *listing) complete(r *reader, seen map[place]map[string]bool) error {
	known := map[place]bool{}
	for _, p := range l.packages {
		for _, c := range p.GetChannels() {
			at := place{p.GetName(), c.GetName()}
			known[at] = true
			if !seen[at][c.GetCsvName()] {
				return r.torn("lists no bundle %q, the head of channel %q of package %q", c.GetCsvName(), at.channel,
					at.pkg)
			}
		}
	}
	for at := range seen {
		if !known[at] {
			return r.torn("lists a bundle of channel %q of package %q, which it did not name", at.channel, at.pkg)
		}
	}
	return nil
}

// fingerprint is a digest of everything that was listed, in whatever order.
func (l *listing) fingerprint() (string, error) {
	h := sha256.New()
	heads, err := sumHeads(l.packages)
	if err != nil {
		return "", err
	}
	h.Write(heads)
	slices.SortFunc(l.sums, slices.Compare)
	for _, s := range l.sums {
		h.Write(s)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), nil
}

// sumHeads is a digest of packages with their channels.
func sumHeads(packages map[string]*api.Package) ([]byte, error) {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		p := proto.CloneOf(packages[name])
		slices.SortFunc(p.Channels, func(a, b *api.Channel) int { return cmp.Compare(a.GetName(), b.GetName()) })
		sum, err := sumOf(p)
		if err != nil {
			return nil, err
		}
		h.Write(sum)
	}
	return h.Sum(nil), nil
}

// sumOf is a digest of a message.
func sumOf(m proto.Message) ([]byte, error) {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(raw)
	return sum[:], nil
}
