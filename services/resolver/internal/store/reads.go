package store

import (
	"cmp"
	"slices"

	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

func (w writer) reads(now map[resolution.Read]bool) {
	if sameReads(w.l.reads, now) {
		return
	}
	w.withdrawRequests(now)
	gone, come := difference(w.l.reads, now), difference(now, w.l.reads)
	if len(gone.kinds) > 0 {
		w.queue(`delete from resolver.reads r using unnest($4::text[], $5::text[], $6::text[]) as u(k, c, n)
			where r.tenant = $1 and r.cluster = $2 and r.namespace = $3 and (r.kind, r.catalog, r.name) = (u.k, u.c,
			u.n)`,
			w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, gone.kinds, gone.subjects, gone.names)
	}
	if len(come.kinds) > 0 {
		w.queue(`insert into resolver.reads (tenant, cluster, namespace, kind, catalog, name)
			select $1, $2, $3, k, c, n from unnest($4::text[], $5::text[], $6::text[]) as u(k, c, n)`,
			w.l.Tenant, w.l.Scope.Cluster, w.l.Scope.Namespace, come.kinds, come.subjects, come.names)
	}
}

// columns are reads as the table's columns.
type columns struct{ kinds, subjects, names []string }

// difference are the reads of a that b has not.
func difference(a, b map[resolution.Read]bool) (c columns) {
	for r := range a {
		if !b[r] {
			c.kinds, c.subjects, c.names = append(c.kinds, string(r.Kind)), append(c.subjects, r.Catalog.Name),
				append(c.names, r.Name)
		}
	}
	return c
}

// requestImages asks the indexer for bundle images. The rows stay until the log has their content, or nobody
// asks for them any more.
func (w writer) requestImages(list []decide.Wanted) {
	slices.SortFunc(list, func(a, b decide.Wanted) int {
		// one order for all, so that two decisions never wait for each other in a ring
		return cmp.Or(cmp.Compare(a.Catalog.String(), b.Catalog.String()), cmp.Compare(a.Image, b.Image),
			cmp.Compare(a.Package, b.Package), cmp.Compare(a.Bundle, b.Bundle))
	})
	for _, x := range list {
		subject := catalogSubject(w.l.Scope.Cluster, x.Catalog)
		image := resolution.BundleImage{
			Image: storable(x.Image), Package: storable(x.Package),
			Bundle: storable(x.Bundle),
		}
		// A scope that begins to ask locks a row that is there, so that nobody deletes it meanwhile (withdrawRequests).
		action := `do update set since = w.since`
		if w.l.reads[resolution.Read{
			Kind: resolution.ReadImage, Catalog: resolution.CatalogKey{Name: subject},
			Name: image.ReadName(),
		}] {
			action = `do nothing`
		}
		w.queue(`insert into resolver.wanted_images as w (tenant, subject, image, package, bundle)
			values ($1, $2, $3, $4, $5)
			on conflict (tenant, subject, image, package, bundle) `+action, w.l.Tenant, subject, image.Image, image.Package, image.Bundle)
	}
}

// withdrawRequests deletes the requests for bundle images that only this scope asked for, and does no longer. They are
// locked first: who began to ask meanwhile is seen by the statement that follows.
func (w writer) withdrawRequests(now map[resolution.Read]bool) {
	var subjects, names []string
	for r := range w.l.reads {
		if r.Kind == resolution.ReadImage && !now[r] {
			subjects, names = append(subjects, r.Catalog.Name), append(names, r.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	const wish = `w.tenant = $1 and (w.subject, w.image || ' ' || w.package || ' ' || w.bundle) in (select s, n from unnest($2::text[], $3::text[]) as u(s, n))`
	w.queue(`select from resolver.wanted_images w where `+wish+
		` order by w.subject, w.image, w.package, w.bundle for update`, w.l.Tenant, subjects, names)
	w.queue(`delete from resolver.wanted_images w where `+wish+` and not exists (
		select from resolver.reads r where r.tenant = $1 and r.kind = 'image' and r.catalog = w.subject
		  and r.name = w.image || ' ' || w.package || ' ' || w.bundle and (r.cluster, r.namespace) <> ($4, $5))`,
		w.l.Tenant, subjects, names, w.l.Scope.Cluster, w.l.Scope.Namespace)
}
