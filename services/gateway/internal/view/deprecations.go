package view

import (
	"context"
	"strings"
	"time"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// deprecations adds the conditions of R-SUB-41: they are judged for the subscribed package and
// channel and the installed bundle, against the revision that its cluster sees, and are gone when no longer true.
func (r *Reader) deprecations(ctx context.Context, q pg.Querier, tenant string, s *subscriptionRow) error {
	if s.catalogSubject == "" {
		return nil
	}
	offered, err := servedTo(ctx, q, tenant, s.catalogSubject, model.CatalogView{Cluster: s.Cluster})
	if err != nil || offered.revision == "" {
		return err
	}
	digest, err := packageDigest(ctx, q, tenant, offered.revision, s.Spec.Package)
	if err != nil || digest == "" {
		return err
	}
	p, err := r.Content.document(ctx, q, tenant, digest)
	if err != nil {
		return err
	}
	s.Status.Conditions = append(s.Status.Conditions, deprecationConditions(p, s.Spec.Channel, s.Status.InstalledCSV, at(s.catalogSince, s.CreatedAt), s.catalogEvt)...)
	return nil
}

// deprecationConditions are one condition for each deprecated element, and their roll-up.
func deprecationConditions(p *libcatalog.Package, channel, installed string, since time.Time, event string) []model.Condition {
	var list []model.Condition
	var all []string
	for _, d := range []struct{ condition, schema, name, label string }{
		{"PackageDeprecated", "olm.package", "", p.Name},
		{"ChannelDeprecated", "olm.channel", channel, channel},
		{"BundleDeprecated", "olm.bundle", installed, installed},
	} {
		if d.label == "" {
			continue
		}
		text := display.Deprecation(p, d.schema, d.name)
		if text == "" {
			continue
		}
		text = d.schema + "/" + d.label + ": " + text
		all = append(all, text)
		list = append(list, model.Condition{Type: d.condition, Status: "True", Reason: "Deprecated", Message: text, Since: since, Event: event})
	}
	if len(all) > 0 {
		list = append(list, model.Condition{
			Type: "Deprecated", Status: "True", Reason: "Deprecated", Message: strings.Join(all, "; "), Since: since, Event: event,
		})
	}
	return list
}
