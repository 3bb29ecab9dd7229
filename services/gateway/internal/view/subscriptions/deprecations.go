package subscriptions

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/pg"
	catalogview "github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// deprecations are the conditions of R-SUB-41: they are judged for the subscribed package and
// channel and the installed bundle, against the revision that its cluster sees, and are gone when no longer true.
func (r *Reader) deprecations(ctx context.Context, q pg.Querier, tenant string, s row) ([]model.Condition, error) {
	if s.CatalogSubject == "" {
		return nil, nil
	}
	offered, err := catalogview.ServedTo(ctx, q, tenant, s.CatalogSubject, model.CatalogView{Cluster: s.Cluster})
	if err != nil || offered.Revision == "" {
		return nil, err
	}
	digest, err := content.Digest(ctx, q, tenant, offered.Revision, s.Package)
	if err != nil || digest == "" {
		return nil, err
	}
	p, err := r.Content.Package(ctx, q, tenant, digest)
	if err != nil {
		return nil, err
	}
	since, err := deprecatedSince(ctx, q, tenant, s)
	if err != nil {
		return nil, err
	}
	return deprecationConditions(p, s, since), nil
}

// moment is an event that set something.
type moment struct {
	event string
	since time.Time
}

// later is the one of two that came later: a condition about two things holds since the second one does.
func (m moment) later(event string, since *time.Time) moment {
	if since != nil && since.After(m.since) {
		return moment{event, *since}
	}
	return m
}

// deprecatedSince says by which events the elements of the subscribed package were deprecated.
func deprecatedSince(ctx context.Context, q pg.Querier, tenant string, s row) (map[string]moment, error) {
	rows, err := q.Query(ctx, `select element, event_id, since from subscription_deprecations
		where tenant = $1 and subject = $2 and variant = $3 and package = $4`, tenant, s.CatalogSubject, s.CatalogVariant, s.Package)
	if err != nil {
		return nil, fmt.Errorf("read deprecations: %w", pg.Err(err))
	}
	out := map[string]moment{}
	var element string
	var m moment
	_, err = pgx.ForEachRow(rows, []any{&element, &m.event, &m.since}, func() error { out[element] = m; return nil })
	return out, err
}

// deprecationConditions are one condition for each deprecated element, and their roll-up. A revision with too many
// changes to name them all (CatalogRevisionPublished) stands for what it does not name.
func deprecationConditions(p *libcatalog.Package, s row, since map[string]moment) []model.Condition {
	revision := moment{cmp.Or(s.RevisionEvent, s.CatalogEvent), at(s.RevisionSince, at(s.CatalogSince, s.Created))}
	var list []model.Condition
	var all []string
	var first moment
	for _, d := range []struct {
		condition, schema, name, label string
		by                             string // the other event that it takes
		from                           *time.Time
	}{
		{"PackageDeprecated", "olm.package", "", p.Name, "", nil},
		{"ChannelDeprecated", "olm.channel", s.Channel, s.Channel, s.SpecEvent, s.SpecSince},
		{"BundleDeprecated", "olm.bundle", s.InstalledCSV, s.InstalledCSV, s.InstalledEvent, s.InstalledSince},
	} {
		if d.label == "" {
			continue
		}
		text := display.Deprecation(p, d.schema, d.name)
		if text == "" {
			continue
		}
		m, named := since[strings.TrimSuffix(d.schema+"/"+d.name, "/")]
		if !named {
			m = revision
		}
		m = m.later(d.by, d.from)
		if first.event == "" || m.since.Before(first.since) {
			first = m
		}
		text = d.schema + "/" + d.label + ": " + text
		all = append(all, text)
		list = append(list, model.Condition{
			Type: d.condition, Status: "True", Reason: "Deprecated", Message: text, Since: m.since, Event: m.event,
		})
	}
	if len(all) > 0 {
		list = append(list, model.Condition{
			Type: "Deprecated", Status: "True", Reason: "Deprecated", Message: strings.Join(all,
				"; "), Since: first.since, Event: first.event,
		})
	}
	return list
}
