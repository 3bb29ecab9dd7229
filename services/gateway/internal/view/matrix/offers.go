package matrix

import (
	"context"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// followed is what a subscription follows; its zero value is nothing, or what the caller may not list.
type followed struct {
	Catalog          string
	CatalogNamespace string // "" for one of the hub
	Own              string // the cluster, where a namespace of it is named
	Channel          string // "" for the default one
	Variant          string // the minor version of the cluster's Kubernetes, which may have a variant of the catalog
}

// offer is what a followed channel has.
type offer struct {
	catalog, channel, variant string
	head                      libcatalog.Bundle
	versions                  []string // of the channel
	all                       []string // of the package
}

type offerKey struct {
	followed

	pkg string
}

// offer reads what is offered to those who follow something, as one of their clusters sees it; nil where nothing can be
// read. What was asked before is not asked again.
func (a *asking) offer(ctx context.Context, pkg string, f followed, cluster string) (*offer, error) {
	if f.Catalog == "" {
		return nil, nil
	}
	key := offerKey{f, pkg}
	if known, ok := a.offers[key]; ok {
		return known, nil
	}
	found, err := a.readOffer(ctx, pkg, f, cluster)
	if err == nil {
		a.offers[key] = found
	}
	return found, err
}

func (a *asking) readOffer(ctx context.Context, pkg string, f followed, cluster string) (*offer, error) {
	subject, served, err := a.served(ctx, f, cluster)
	if err != nil || served.Revision == "" || served.Disabled {
		return nil, err
	}
	digest, err := content.Digest(ctx, a.tx, a.who.Tenant, served.Revision, pkg)
	if err != nil || digest == "" {
		return nil, err
	}
	p, err := a.content.Package(ctx, a.tx, a.who.Tenant, digest)
	if err != nil {
		return nil, err
	}
	channel := f.Channel
	if channel == "" {
		channel = p.DefaultChannel
	}
	ch, ok := p.Channel(channel)
	if !ok {
		return nil, nil
	}
	out := &offer{catalog: subject, channel: channel}
	if served.Templated {
		out.variant = f.Variant
	}
	if out.head, ok = display.Head(p, ch); !ok {
		return nil, nil
	}
	for _, b := range display.Entries(p, ch) {
		out.versions = append(out.versions, b.Version)
	}
	for _, b := range p.Bundles {
		out.all = append(out.all, b.Version)
	}
	return out, nil
}

// served is the catalog that a subscription means: that of the namespace that it names where there is such a one, else
// the hub's.
func (a *asking) served(ctx context.Context, f followed, cluster string) (string, catalogs.Serving, error) {
	view := model.CatalogView{Cluster: cluster}
	if f.CatalogNamespace != "" {
		own := catalog.Name{Cluster: f.Own, Namespace: f.CatalogNamespace, Name: f.Catalog}.Subject()
		s, err := catalogs.ServedTo(ctx, a.tx, a.who.Tenant, own, view)
		if err != nil || s.Known {
			return own, s, err
		}
	}
	s, err := catalogs.ServedTo(ctx, a.tx, a.who.Tenant, f.Catalog, view)
	return f.Catalog, s, err
}
