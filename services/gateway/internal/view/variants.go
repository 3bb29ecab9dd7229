package view

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// statusRow is what the indexer says of one variant of a catalog.
type statusRow struct {
	model.CatalogVariant

	catalog, document         string
	template, templateMessage string
	updated                   time.Time
}

const statusColumns = `select catalog, variant, reference, resolved, revision, state, reason, message, document, connection,
	observed, connected, polled, next_look, error, error_reason, quarantined, errors, warnings, infos, template, template_message, updated
	from catalog_api.catalog_status where tenant = $1 and catalog = any ($2)`

// catalogStatus reads what the indexer saw, by the stream of the catalog, the highest version of Kubernetes first.
func catalogStatus(ctx context.Context, q pg.Querier, tenant string, streams []string) (map[string][]statusRow, error) {
	rows, err := q.Query(ctx, statusColumns, tenant, streams)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s statusRow, err error) {
		err = r.Scan(&s.catalog, &s.Variant, &s.Reference, &s.Resolved, &s.Revision, &s.State, &s.Reason, &s.Message, &s.document, &s.Connection,
			&s.ObservedAt, &s.ConnectedAt, &s.PolledAt, &s.NextAt, &s.Error, &s.ErrorReason, &s.Quarantined,
			&s.Errors, &s.Warnings, &s.Infos, &s.template, &s.templateMessage, &s.updated)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b statusRow) int { return -compareVersions(a.Variant, b.Variant) })
	out := map[string][]statusRow{}
	for _, s := range all {
		out[s.catalog] = append(out[s.catalog], s)
	}
	return out, nil
}

// compareVersions orders major.minor by number; "" is least.
func compareVersions(a, b string) int {
	number := func(s string) (n [2]int) {
		for i, part := range strings.SplitN(s, ".", len(n)) {
			// What is no number counts as nothing, as "" does.
			n[i], _ = strconv.Atoi(part)
		}
		return n
	}
	x, y := number(a), number(b)
	return slices.Compare(x[:], y[:])
}

// addVariants adds what the indexer saw. The events of a templated catalog tell of its variants in turn, so
// that state and revision are those of the highest one, as for whom no cluster is known.
func addVariants(ctx context.Context, q pg.Querier, tenant string, items []catalogRow) error {
	streams := make([]string, len(items))
	for i, c := range items {
		streams[i] = c.Stream
	}
	found, err := catalogStatus(ctx, q, tenant, streams)
	if err != nil {
		return err
	}
	for i := range items {
		c := &items[i]
		rows := found[c.Stream]
		for _, s := range rows {
			c.Variants = append(c.Variants, s.CatalogVariant)
		}
		if len(rows) > 0 && rows[0].Variant != "" {
			c.State, c.Reason, c.Revision, c.document = rows[0].State, rows[0].Reason, rows[0].Revision, rows[0].document
		}
	}
	return nil
}

// catalogConditions says what is odd about a catalog and is no failure of a look: a template that does not
// resolve (R-CAT-93), a credential that is not there.
func catalogConditions(ctx context.Context, q pg.Querier, tenant string, c model.Catalog) ([]model.Condition, error) {
	var list []model.Condition
	found, err := catalogStatus(ctx, q, tenant, []string{c.Stream})
	if err != nil {
		return nil, err
	}
	for _, s := range found[c.Stream] {
		if s.template == "" {
			continue
		}
		list = append(list, templateConditions(s)...)
	}
	if len(c.Source.Secrets) == 0 {
		return list, nil
	}
	rows, err := q.Query(ctx, `select name from gateway.catalog_secrets where tenant = $1 and name = any ($2)`, tenant, c.Source.Secrets)
	if err != nil {
		return nil, err
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	missing := slices.DeleteFunc(slices.Clone(c.Source.Secrets), func(name string) bool { return slices.Contains(known, name) })
	if len(missing) > 0 {
		list = append(list, model.Condition{
			Type: "SecretsMissing", Status: "True", Reason: "UnknownSecret", Since: c.UpdatedAt,
			Message: "no catalog secret is known by the name " + strings.Join(missing, ", ") + ": keep it with chandler catalog secret set NAME (PUT /catalogsecrets/NAME), or take it out of the source",
		})
	}
	return list, err
}

// templateConditions say whether the template of a variant stands for an image, and which image that is
// (R-CAT-93). Where the template does not resolve it is the one that the source names beside it, or none.
func templateConditions(s statusRow) []model.Condition {
	of := func(text string) string {
		if s.Variant == "" {
			return text
		}
		return strings.TrimSuffix(fmt.Sprintf("Kubernetes %s: %s", s.Variant, text), ": ")
	}
	templates := model.Condition{Type: source.ConditionTemplates, Status: "True", Reason: s.template, Message: of(s.templateMessage), Since: s.updated}
	image := model.Condition{Type: source.ConditionImage, Status: "True", Reason: s.template, Message: of(s.Reference), Since: s.updated}
	if s.template != source.ReasonTemplatesResolved {
		templates.Status = "False"
	}
	if s.Reference == "" {
		image.Status, image.Message = "False", templates.Message
	}
	return []model.Condition{templates, image}
}

// variantOf is the variant that a cluster sees. One that has not told its version sees the fallback; without a
// cluster there is none to tell.
func variantOf(ctx context.Context, q pg.Querier, tenant, cluster string) (string, error) {
	if cluster == "" {
		return "", nil
	}
	var version string
	err := pg.Err(q.QueryRow(ctx, `select kubernetes_version from gateway.clusters where tenant = $1 and name = $2`, tenant, cluster).Scan(&version))
	if err != nil && !errs.Is(err, errs.NotFound) {
		return "", err
	}
	v, err := source.Variant(version)
	if err != nil {
		v = ""
	}
	return v, nil
}

// serving is what a catalog serves to somebody.
type serving struct {
	revision, state string
	disabled        bool
	known           bool // the indexer knows the catalog
	there           bool // it has the variant that was named
}

// servedTo is what a catalog serves to whom view names: a cluster sees the variant of its Kubernetes version, or
// the fallback; for nobody in particular it is that of the newest.
func servedTo(ctx context.Context, q pg.Querier, tenant, subject string, view model.CatalogView) (serving, error) {
	var s serving
	var templated bool
	var stream string
	err := pg.Err(q.QueryRow(ctx, `select revision, state, disabled, templated, stream from catalog_api.catalogs where tenant = $1 and name = $2`, tenant, subject).
		Scan(&s.revision, &s.state, &s.disabled, &templated, &stream))
	if errs.Is(err, errs.NotFound) {
		return s, nil
	}
	s.known = err == nil
	if err != nil || !templated || view == (model.CatalogView{}) {
		return s, err
	}
	variant := view.Variant
	if variant == "" {
		if variant, err = variantOf(ctx, q, tenant, view.Cluster); err != nil {
			return s, err
		}
	}
	found, err := catalogStatus(ctx, q, tenant, []string{stream})
	s.revision, s.state = "", model.CatalogLoading
	for _, row := range found[stream] { // the fallback is the last of them
		if row.Variant == variant || view.Variant == "" && row.Variant == "" && s.revision == "" {
			s.revision, s.state, s.there = row.Revision, row.State, s.there || row.Variant == variant
		}
	}
	return s, err
}

// Findings lists what was wrong with a catalog at the last look, in the order in which it was found.
func (r *Reader) Findings(ctx context.Context, who model.Caller, name catalog.Name, f model.FindingFilter) (items []model.Finding, next []string, err error) {
	var raw json.RawMessage
	from := 0
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		document, err := findingsOf(ctx, tx, who.Tenant, name, f.Variant)
		if err != nil || document.digest == "" {
			return err
		}
		// A page of another look would leave gaps: the list begins anew.
		if len(f.After) == 2 && f.After[0] == document.digest {
			if from, err = strconv.Atoi(f.After[1]); err != nil || from < 0 {
				return errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
			}
		}
		next = []string{document.digest}
		raw, err = documentText(ctx, tx, who.Tenant, document)
		return err
	})
	var all []model.Finding
	if err == nil && raw != nil {
		err = json.Unmarshal(raw, &all)
	}
	if err != nil {
		return nil, nil, err
	}
	items = []model.Finding{}
	for i := from; i < len(all); i++ {
		x := all[i]
		if f.Severity != "" && x.Severity != f.Severity || f.Package != "" && x.Package != f.Package {
			continue
		}
		if len(items) == f.Limit {
			return items, append(next, strconv.Itoa(i)), nil
		}
		items = append(items, x)
	}
	return items, nil, nil
}

// findingsDocument names a report of the indexer.
type findingsDocument struct{ stream, digest string }

func documentText(ctx context.Context, tx pgx.Tx, tenant string, d findingsDocument) (json.RawMessage, error) {
	return document(ctx, tx, `select findings::text from catalog_api.findings where tenant = $1 and document = $2 and catalog = $3`, tenant, d.digest, d.stream)
}

// findingsOf names the report of the last look at a catalog: of the variant that is asked for, or of the highest.
func findingsOf(ctx context.Context, tx pgx.Tx, tenant string, name catalog.Name, variant string) (findingsDocument, error) {
	c, err := one(ctx, tx, catalogColumns+` where c.tenant = $1 and c.subject = $2`, []any{tenant, name.Subject()}, noCatalog(name), scanCatalog)
	if err != nil {
		return findingsDocument{}, err
	}
	found, err := catalogStatus(ctx, tx, tenant, []string{c.Stream})
	if err != nil {
		return findingsDocument{}, err
	}
	for _, s := range found[c.Stream] {
		if variant == "" || s.Variant == variant {
			return findingsDocument{c.Stream, s.document}, nil
		}
	}
	if variant != "" {
		return findingsDocument{}, errs.New(errs.NotFound, "catalog %q has no variant %q", name.Subject(), variant)
	}
	return findingsDocument{c.Stream, c.document}, nil
}
