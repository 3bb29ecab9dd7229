package browse

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// maxWords bounds the words of one search; people type two or three.
	maxWords = 8
	// maxLiveCatalogs bounds the catalogs that one search goes through.
	maxLiveCatalogs = 10_000
)

// offered is a package of a catalog that is in service.
type offered struct {
	ref     content.Ref
	card    *display.Card
	catalog *liveCatalog
	rank    float64
}

// liveCatalog is a catalog that is offered, with the revision in service.
type liveCatalog struct {
	catalogs.Catalog

	live string // revision
}

// Search finds packages in all catalogs that are offered (R-CAT-105, R-CAT-107, R-UI-1): by words, by what
// their tiles say, and by who can see them. It reads the live revisions, so that nothing of an old one is
// found; Postgres matches and ranks words, tiles are immutable and kept in memory.
func (r *Reader) Search(ctx context.Context, who model.Caller, f model.PackageFilter) (model.FoundPackages, error) {
	var all []offered
	err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		live, err := r.liveCatalogs(ctx, tx, who, f)
		if err != nil {
			return err
		}
		if all, err = r.offers(ctx, tx, who.Tenant, live); err != nil {
			return err
		}
		all, err = r.matching(ctx, tx, who.Tenant, live, all, f.Search)
		return err
	})
	if err != nil {
		return model.FoundPackages{}, err
	}
	found, facets := choose(all, f)
	slices.SortFunc(found, byRank)
	return pageOf(found, facets, f.Page)
}

// liveCatalogs are the catalogs that are offered to whom the filter names. Which of them are, the gateway's
// own view says, so that a reader who waits for a position sees what was decided there.
func (r *Reader) liveCatalogs(
	ctx context.Context, tx pgx.Tx, who model.Caller, f model.PackageFilter,
) ([]*liveCatalog, error) {
	tenant := who.Tenant
	w := readmodel.Tenant("c.tenant", tenant)
	catalogs.Within(&w, who, access.List, access.Packages)
	w.Add("not c.disabled")
	if f.Cluster != "" {
		w.Add("c.visibility_cluster in ('', ?)", f.Cluster)
	}
	switch {
	case f.Namespace != "":
		w.Add("c.visibility_namespace in ('', ?)", f.Namespace)
	case f.Cluster != "" && len(f.Catalogs) == 0 && f.CatalogNamespace == "":
		// Of a cluster as a whole is what each of its namespaces sees; what one alone has is found there, or by its
		// catalog.
		w.Add("c.visibility_namespace = ''")
	}
	w.Equal("c.namespace", f.CatalogNamespace)
	rows, _, err := catalogs.Page(ctx, tx, w, maxLiveCatalogs)
	if err != nil {
		return nil, err
	}
	if err := r.openDisplays(ctx, tx, tenant, rows); err != nil {
		return nil, err
	}
	return inService(ctx, tx, tenant, rows, f.Cluster)
}

// openDisplays adds what people see of catalogs.
func (r *Reader) openDisplays(ctx context.Context, tx pgx.Tx, tenant string, rows []catalogs.Catalog) error {
	commitments := make([]string, len(rows))
	for i, c := range rows {
		commitments[i] = c.Spec
	}
	known, missing := r.Content.Displays(commitments)
	if len(missing) > 0 {
		read := slices.DeleteFunc(slices.Clone(rows),
			func(c catalogs.Catalog) bool { return !slices.Contains(missing, c.Spec) })
		if err := catalogs.AddSources(ctx, tx, r.Bodies, tenant, read); err != nil {
			return err
		}
		for _, c := range read {
			known[c.Spec] = c.Display
			if len(c.Unreadable) == 0 {
				r.Content.KeepDisplay(c.Spec, c.Display)
			}
		}
	}
	for i := range rows {
		rows[i].Display = known[rows[i].Spec]
	}
	return nil
}

// inService adds the revision in service, which for a templated catalog is that of the cluster's version,
// or of the highest where no cluster is named.
func inService(
	ctx context.Context, tx pgx.Tx, tenant string, rows []catalogs.Catalog, cluster string,
) ([]*liveCatalog, error) {
	variant, err := catalogs.VariantOf(ctx, tx, tenant, cluster)
	if err != nil {
		return nil, err
	}
	streams := make([]string, len(rows))
	for i, c := range rows {
		streams[i] = c.Stream
	}
	status, err := tx.Query(ctx, `select catalog, variant, revision from catalog_api.catalog_status
		where tenant = $1 and catalog = any ($2) and revision <> ''`,
		tenant, streams)
	if err != nil {
		return nil, err
	}
	type serving struct{ variant, revision string }
	best := map[string]serving{}
	var stream string
	var s serving
	_, err = pgx.ForEachRow(status, []any{&stream, &s.variant, &s.revision}, func() error {
		have, ok := best[stream]
		switch {
		case !ok, cluster != "" && s.variant == variant, cluster == "" && catalogs.CompareVersions(s.variant,
			have.variant) > 0,
			cluster != "" && have.variant != variant && s.variant == "":
			best[stream] = s
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]*liveCatalog, 0, len(rows))
	for _, c := range rows {
		if s, ok := best[c.Stream]; ok && (cluster == "" || s.variant == "" || s.variant == variant) {
			out = append(out, &liveCatalog{c, s.revision})
		}
	}
	return out, nil
}

// offers lists every package of the live catalogs with its tile.
func (r *Reader) offers(ctx context.Context, tx pgx.Tx, tenant string, live []*liveCatalog) ([]offered, error) {
	var all []offered
	var refs []content.Ref
	for _, c := range live {
		packages, err := r.Content.PackagesOf(ctx, tx, tenant, c.live)
		if err != nil {
			return nil, err
		}
		for _, ref := range packages {
			all = append(all, offered{ref: ref, catalog: c})
		}
		refs = append(refs, packages...)
	}
	cards, err := r.Content.Cards(ctx, tx, tenant, refs)
	for i := range all {
		all[i].card = cards[all[i].ref.Digest]
	}
	return all, err
}

// matching keeps the packages that hold all words, and ranks them.
func (r *Reader) matching(
	ctx context.Context, tx pgx.Tx, tenant string, live []*liveCatalog, all []offered, search string,
) ([]offered, error) {
	words := wordsOf(search)
	if len(words) == 0 {
		if strings.TrimSpace(search) != "" {
			return nil, nil // only signs: nothing is called so
		}
		return all, nil
	}
	revisions := make([]string, 0, len(live))
	for _, c := range live {
		revisions = append(revisions, c.live)
	}
	slices.Sort(revisions)
	rows, err := tx.Query(ctx, `select digest, rank from catalog_api.search_packages($1, $2, $3)`, tenant,
		slices.Compact(revisions), words)
	if err != nil {
		return nil, err
	}
	ranks := map[string]float64{}
	var digest string
	var rank float32
	_, err = pgx.ForEachRow(rows, []any{&digest, &rank}, func() error {
		ranks[digest] = float64(rank)
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := all[:0]
	for _, o := range all {
		if r, ok := ranks[o.ref.Digest]; ok {
			o.rank = r + closeness(o.card, search)
			kept = append(kept, o)
		}
	}
	return kept, nil
}

// closeness prefers what is called exactly so, then what begins so: who types a name wants that one.
func closeness(c *display.Card, search string) float64 {
	const exact, begins = 10, 5
	search = strings.TrimSpace(search)
	best := 0.0
	for _, name := range []string{c.Package, c.DisplayName} {
		switch {
		case strings.EqualFold(name, search):
			best = exact
		case len(name) > len(search) && strings.EqualFold(name[:len(search)], search):
			best = max(best, begins)
		}
	}
	return best
}

// wordsOf takes letters and digits: all else parts words, in what people type as in what Postgres keeps.
func wordsOf(search string) []string {
	words := strings.FieldsFunc(strings.ToLower(search),
		func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return words[:min(len(words), maxWords)]
}

func byRank(a, b offered) int {
	return cmp.Or(-cmp.Compare(a.rank, b.rank), cmp.Compare(a.ref.Name, b.ref.Name),
		cmp.Compare(a.catalog.Subject, b.catalog.Subject))
}

// pageOf is the part of the list behind the cursor, which names the last item of the page before.
func pageOf(found []offered, facets model.Facets, p model.Page) (model.FoundPackages, error) {
	out := model.FoundPackages{Total: len(found), Facets: facets, Items: []model.FoundPackage{}}
	from := 0
	if len(p.After) > 0 {
		const parts = 3 // rank, package, catalog
		if len(p.After) != parts {
			return out, readmodel.ForeignCursor()
		}
		rank, err := strconv.ParseFloat(p.After[0], 64)
		if err != nil {
			return out, readmodel.ForeignCursor()
		}
		last := offered{
			rank: rank, ref: content.Ref{Name: p.After[1]},
			catalog: &liveCatalog{Catalog: catalogs.Catalog{Subject: p.After[2]}},
		}
		at, there := slices.BinarySearchFunc(found, last, byRank)
		if from = at; there {
			from++
		}
	}
	for _, o := range found[from:min(from+p.Limit, len(found))] {
		out.Items = append(out.Items, model.FoundPackage{
			PackageSummary: summaryOf(o.card, o.ref.Digest), Catalog: nameOf(o.catalog.Catalog.Catalog),
		})
	}
	if from+p.Limit < len(found) {
		last := found[from+p.Limit-1]
		out.Next = []string{strconv.FormatFloat(last.rank, 'g', -1, 64), last.ref.Name, last.catalog.Subject}
	}
	return out, nil
}
