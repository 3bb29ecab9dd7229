package catalogs

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Status is what the indexer says about one variant of a catalog.
type Status struct {
	model.CatalogVariant

	document        string // digest of the findings
	template        string // reason about the template of the image reference
	templateMessage string
	updated         time.Time
}

const statusColumns = `select catalog, variant, reference, resolved, revision, state, reason, message, document,
	connection,
	observed, connected, polled, next_look, error, error_reason, quarantined, errors, warnings, infos, template,
	template_message, updated
	from catalog_api.catalog_status where tenant = $1 and catalog = any ($2)`

type statusRow struct {
	Catalog         string // stream
	Variant         string
	Reference       string
	Resolved        string
	Revision        string
	State           string
	Reason          string
	Message         string
	Document        string
	Template        string
	TemplateMessage string
	Updated         time.Time
	polling
	counts
}

// polling is how the indexer reaches the source.
type polling struct {
	Connection  string
	Observed    *time.Time
	Connected   *time.Time
	Polled      *time.Time
	Next        *time.Time `db:"next_look"`
	Error       string
	ErrorReason string
}

// counts are about the findings of the last poll.
type counts struct {
	Quarantined []string
	Errors      int
	Warnings    int
	Infos       int
}

func (r statusRow) status() Status {
	return Status{
		CatalogVariant: model.CatalogVariant{
			Variant: r.Variant, Reference: r.Reference, Resolved: r.Resolved, Revision: r.Revision, State: r.State,
			Reason: r.Reason, Message: r.Message, Connection: r.Connection, ObservedAt: r.Observed,
			ConnectedAt: r.Connected, PolledAt: r.Polled, NextAt: r.Next, Error: r.Error, ErrorReason: r.ErrorReason,
			Quarantined: r.Quarantined, Errors: r.Errors, Warnings: r.Warnings, Infos: r.Infos,
		},
		document: r.Document, template: r.Template, templateMessage: r.TemplateMessage, updated: r.Updated,
	}
}

// statusOf reads what the indexer saw, by the stream of the catalog, the highest version of Kubernetes first.
func statusOf(ctx context.Context, q pg.Querier, tenant string, streams []string) (map[string][]Status, error) {
	rows, err := q.Query(ctx, statusColumns, tenant, streams)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[statusRow])
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b statusRow) int { return -CompareVersions(a.Variant, b.Variant) })
	out := map[string][]Status{}
	for _, s := range all {
		out[s.Catalog] = append(out[s.Catalog], s.status())
	}
	return out, nil
}

// CompareVersions orders major.minor by number; "" is least.
func CompareVersions(a, b string) int {
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

// addVariants adds what the indexer saw. The events of a templated catalog are about its variants in turn, so
// that state and revision are those of the highest one, as for whom no cluster is known.
func addVariants(ctx context.Context, q pg.Querier, tenant string, items []Catalog) error {
	streams := make([]string, len(items))
	for i, c := range items {
		streams[i] = c.Stream
	}
	found, err := statusOf(ctx, q, tenant, streams)
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
			c.State, c.Reason, c.Revision, c.document = rows[0].State, rows[0].Reason, rows[0].Revision,
				rows[0].document
		}
	}
	return nil
}

// conditions say what is wrong with a catalog beside a failure to load: a template that does not resolve (R-CAT-93), a
// credential that is missing.
func conditions(ctx context.Context, q pg.Querier, tenant string, c model.Catalog) ([]model.Condition, error) {
	var list []model.Condition
	found, err := statusOf(ctx, q, tenant, []string{c.Stream})
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
	rows, err := q.Query(ctx, `select name from gateway.catalog_secrets where tenant = $1 and name = any ($2)`, tenant,
		c.Source.Secrets)
	if err != nil {
		return nil, err
	}
	known, err := pgx.CollectRows(rows, pgx.RowTo[string])
	missing := slices.DeleteFunc(slices.Clone(c.Source.Secrets),
		func(name string) bool { return slices.Contains(known, name) })
	if len(missing) > 0 {
		list = append(list, model.Condition{
			Type: "SecretsMissing", Status: "True", Reason: "UnknownSecret", Since: c.UpdatedAt,
			Message: "no catalog secret is known by the name " + strings.Join(missing,
				", ") +
				": keep it with chandler catalog secret set NAME (PUT /catalogsecrets/NAME), or take it out of the " +
				"source",
		})
	}
	return list, err
}

// templateConditions say whether the template of a variant stands for an image, and which image that is
// (R-CAT-93). Where the template does not resolve it is the one that the source names beside it, or none.
func templateConditions(s Status) []model.Condition {
	of := func(text string) string {
		if s.Variant == "" {
			return text
		}
		return strings.TrimSuffix(fmt.Sprintf("Kubernetes %s: %s", s.Variant, text), ": ")
	}
	templates := model.Condition{
		Type: source.ConditionTemplates, Status: "True", Reason: s.template, Message: of(s.templateMessage),
		Since: s.updated,
	}
	image := model.Condition{
		Type: source.ConditionImage, Status: "True", Reason: s.template, Message: of(s.Reference), Since: s.updated,
	}
	if s.template != source.ReasonTemplatesResolved {
		templates.Status = "False"
	}
	if s.Reference == "" {
		image.Status, image.Message = "False", templates.Message
	}
	return []model.Condition{templates, image}
}

// VariantOf is the variant that a cluster sees. One whose version is not known yet sees the fallback; without a cluster
// there is none.
func VariantOf(ctx context.Context, q pg.Querier, tenant, cluster string) (string, error) {
	if cluster == "" {
		return "", nil
	}
	var version string
	err := pg.Err(q.QueryRow(ctx, `select kubernetes_version from clusters where tenant = $1 and name = $2`,
		tenant, cluster).Scan(&version))
	if err != nil && !errs.Is(err, errs.NotFound) {
		return "", err
	}
	v, err := source.Variant(version)
	if err != nil {
		v = ""
	}
	return v, nil
}

// Serving is what a catalog serves to somebody.
type Serving struct {
	Revision, State string
	Disabled        bool
	Templated       bool // it has variants
	Known           bool // the indexer knows the catalog
	HasVariant      bool // it has the variant that was named
}

// ServedTo is what a catalog serves to whom view names: a cluster sees the variant of its Kubernetes version, or
// the fallback; for nobody in particular it is that of the newest.
func ServedTo(ctx context.Context, q pg.Querier, tenant, subject string, view model.CatalogView) (Serving, error) {
	var s Serving
	var stream string
	err := pg.Err(q.QueryRow(ctx, `select revision, state, disabled, templated, stream from catalog_api.catalogs
		where tenant = $1 and name = $2`, tenant, subject).
		Scan(&s.Revision, &s.State, &s.Disabled, &s.Templated, &stream))
	if errs.Is(err, errs.NotFound) {
		return s, nil
	}
	s.Known = err == nil
	if err != nil || !s.Templated || view == (model.CatalogView{}) {
		return s, err
	}
	variant := view.Variant
	if variant == "" {
		if variant, err = VariantOf(ctx, q, tenant, view.Cluster); err != nil {
			return s, err
		}
	}
	found, err := statusOf(ctx, q, tenant, []string{stream})
	s.Revision, s.State = "", model.CatalogLoading
	for _, row := range found[stream] { // the fallback is the last of them
		if row.Variant == variant || view.Variant == "" && row.Variant == "" && s.Revision == "" {
			s.Revision, s.State, s.HasVariant = row.Revision, row.State, s.HasVariant || row.Variant == variant
		}
	}
	return s, err
}
