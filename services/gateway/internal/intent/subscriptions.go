package intent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	libcatalog "github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/catalog/display"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

const (
	// kindSubscriptionConfig is the kind of body that holds spec.config.
	kindSubscriptionConfig = "subscription-config"
	// maxConfigBytes bounds spec.config: it holds a few environment variables, volumes and tolerations.
	maxConfigBytes = 64 << 10
	// maxChoices bounds the names that a refusal lists.
	maxChoices = 50
)

// configKeys are the keys of spec.config (R-SUB §4.2).
var configKeys = []string{
	"affinity", "annotations", "env", "envFrom", "nodeSelector", "resources", "selector", "tolerations", "volumeMounts", "volumes",
}

var subscriptions = aggregate[subscription.State, subscription.Command]{
	events.KindSubscription, func(s subscription.State) string { return s.Name.Subject() }, subscription.Decide, fold(subscription.Evolve),
}

// CreateSubscription subscribes.
func (s *Service) CreateSubscription(ctx context.Context, who model.Caller, name subscription.Name, in model.ChangeSubscription, how model.Validate) (model.Subscription, error) {
	var warnings []string
	var made string
	command := func(ctx context.Context, tx pgx.Tx, now subscription.State) (subscription.Command, error) {
		if err := s.clusterExists(ctx, tx, who.Tenant, name.Cluster); err != nil {
			return nil, err
		}
		// What is wrong in itself, or exists, is said before what is wrong beside a catalog.
		c := subscription.Create{Name: name, Spec: subscriptionSpec(in.SubscriptionSpec)}
		if _, err := subscription.Decide(now, c); err != nil {
			return nil, err
		}
		var err error
		if c.Metadata, err = s.metadata(ctx, tx, who, events.KindSubscription, in.Metadata, now.Metadata); err != nil {
			return nil, err
		}
		c.Spec.Config, warnings, err = s.checkedConfig(ctx, tx, who, name, in.SubscriptionSpec, how, "")
		return c, err
	}
	var out outcome[subscription.State]
	var appended eventlog.Appended
	err := s.transact(ctx, who, "intent "+string(events.KindSubscription), func(ctx context.Context, tx pgx.Tx) (err error) {
		if made, err = s.ensureGlobalGroup(ctx, tx, who, name.Cluster, name.Namespace); err != nil {
			return err
		}
		out, appended, err = attempt(ctx, s, tx, who, subscriptions, name.Subject(), subscription.State{Name: name}, command)
		return err
	})
	if err != nil {
		return model.Subscription{}, err
	}
	out.Position = s.position(ctx, appended)
	if made != "" {
		warnings = append(warnings, made)
	}
	answer := subscriptionAnswer(out, in)
	answer.Warnings = warned(ctx, warnings)
	return answer, nil
}

// ChangeSubscription replaces the intent of a subscription.
func (s *Service) ChangeSubscription(ctx context.Context, who model.Caller, name subscription.Name, in model.ChangeSubscription, how model.Validate) (model.Subscription, error) {
	var warnings []string
	out, err := s.onSubscription(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now subscription.State) (subscription.Command, error) {
		c := subscription.Change{Spec: subscriptionSpec(in.SubscriptionSpec)}
		if _, err := subscription.Decide(now, c); err != nil {
			return nil, err
		}
		var err error
		if c.Metadata, err = s.metadata(ctx, tx, who, events.KindSubscription, in.Metadata, now.Metadata); err != nil {
			return nil, err
		}
		c.Spec.Config, warnings, err = s.checkedConfig(ctx, tx, who, name, in.SubscriptionSpec, how, now.Spec.Config)
		return c, err
	})
	if err != nil {
		return model.Subscription{}, err
	}
	answer := subscriptionAnswer(out, in)
	answer.Warnings = warned(ctx, warnings)
	return answer, nil
}

// RollbackSubscription asks to go back to a version that was installed before.
func (s *Service) RollbackSubscription(ctx context.Context, who model.Caller, name subscription.Name, in model.RollBack) (model.Subscription, error) {
	var asked subscription.Rollback
	out, err := s.onSubscription(ctx, who, name, func(ctx context.Context, tx pgx.Tx, now subscription.State) (subscription.Command, error) {
		if !now.Created {
			return subscription.Rollback{}, nil // which says that there is none
		}
		past, err := s.History.Past(ctx, tx, who.Tenant, name)
		if err != nil {
			return nil, err
		}
		asked, err = wayBack(name, past, in.To)
		return asked, err
	})
	if err != nil {
		return model.Subscription{}, err
	}
	answer := subscriptionAnswer(out, model.ChangeSubscription{
		Metadata: model.Metadata{Labels: out.State.Metadata.Labels},
		SubscriptionSpec: model.SubscriptionSpec{
			Package: out.State.Spec.Package, Channel: out.State.Spec.Channel, Catalog: out.State.Spec.Catalog,
			CatalogNamespace: out.State.Spec.CatalogNamespace, StartingCSV: out.State.Spec.StartingCSV,
		},
	})
	answer.Status.InstalledCSV, answer.Status.Rollback = asked.From, &model.Rollback{From: asked.From, To: asked.To}
	return answer, nil
}

// wayBack chooses where a rollback leads.
func wayBack(name subscription.Name, past model.Past, to string) (subscription.Rollback, error) {
	switch {
	case past.CSV == "":
		return subscription.Rollback{}, errs.New(errs.Unprocessable, "subscription %q has nothing installed that one could go back from", name.Subject()).At("/to", "earlier-version")
	case len(past.Before) == 0:
		return subscription.Rollback{}, errs.New(errs.Unprocessable, "nothing was installed before %s that one could go back to", past.CSV).At("/to", "earlier-version")
	case to == "":
		to = past.Before[0]
	case !slices.Contains(past.Before, to):
		return subscription.Rollback{}, errs.New(errs.Unprocessable, "%s was not installed before %s; there were: %s", to, past.CSV, choices(past.Before)).At("/to", "earlier-version")
	}
	return subscription.Rollback{From: past.CSV, To: to}, nil
}

// DeleteSubscription ends the intent; the installed operator stays (R-SUB-32).
func (s *Service) DeleteSubscription(ctx context.Context, who model.Caller, name subscription.Name) (model.Removed, error) {
	out, err := s.onSubscription(ctx, who, name, func(context.Context, pgx.Tx, subscription.State) (subscription.Command, error) {
		return subscription.Delete{}, nil
	})
	return model.Removed{Position: out.Position}, err
}

func (s *Service) onSubscription(ctx context.Context, who model.Caller, name subscription.Name,
	command commander[subscription.State, subscription.Command],
) (outcome[subscription.State], error) {
	return run(ctx, s, who, subscriptions, name.Subject(), subscription.State{Name: name}, command)
}

func subscriptionSpec(in model.SubscriptionSpec) events.SubscriptionSpec {
	return events.SubscriptionSpec{
		Package: in.Package, Channel: in.Channel, Catalog: in.Catalog, CatalogNamespace: in.CatalogNamespace,
		StartingCSV: in.StartingCSV, Approval: in.Approval,
	}
}

// checkedConfig compares the subscription with its catalog and stores its configuration. What is only advised comes back
// as warnings.
func (s *Service) checkedConfig(ctx context.Context, tx pgx.Tx, who model.Caller, name subscription.Name,
	in model.SubscriptionSpec, how model.Validate, previous string,
) (commitment string, warnings []string, err error) {
	offer, warnings, err := s.checkOffer(ctx, tx, who, name, in, how)
	if err != nil {
		return "", nil, err
	}
	body, err := canonicalConfig(in.Config)
	if err != nil {
		return "", nil, err
	}
	lacking, err := s.adviseTokens(ctx, tx, who, name, in, offer, body)
	if warnings = append(warnings, lacking...); err != nil || body == nil {
		return "", warnings, err
	}
	warnings = append(warnings, render.AdviseConfig(body)...)
	if how != model.ValidateLenient {
		byItself, err := checkTokens(body, in.Approval, how)
		if err != nil {
			return "", nil, err
		}
		warnings = append(warnings, byItself...)
	}
	commitment, err = s.Bodies.Commit(ctx, tx, who.Tenant, kindSubscriptionConfig, body, announced(ctx).BodyOr(previous))
	return commitment, warnings, err
}

// checkTokens checks identities of a cloud in a configuration. That an upgrade should wait for a person is advice (R-TOK-2),
// and a rule where the caller wants it strict.
func checkTokens(body []byte, approval string, how model.Validate) (warnings []string, err error) {
	if err := subscription.CheckTokens(body); err != nil {
		return nil, err
	}
	advice, err := subscription.AdviseApproval(body, approval)
	if err != nil || advice == nil {
		return nil, err
	}
	if how == model.ValidateStrict {
		return nil, advice
	}
	return []string{advice.Error()}, nil
}

// adviseTokens names what config.env lacks for the operator to get short-lived tokens of the cluster's cloud (R-TOK-1).
func (s *Service) adviseTokens(ctx context.Context, tx pgx.Tx, who model.Caller, name subscription.Name,
	in model.SubscriptionSpec, offer catalog.Offer, config []byte,
) ([]string, error) {
	b, ok := firstBundle(in, offer.Package)
	if !ok {
		return nil, nil
	}
	c, err := s.Clusters.Observed(ctx, tx, who.Tenant, name.Cluster)
	if err != nil {
		return nil, err
	}
	missing, err := subscription.MissingTokens(c.TokenAuth, display.Read(b).Annotations, config)
	if err != nil || len(missing) == 0 {
		return nil, err
	}
	return []string{fmt.Sprintf("cluster %s gives operators short-lived tokens of %s, which %s can use: config.env lacks %s",
		name.Cluster, c.TokenAuth, b.Name, strings.Join(missing, ", "))}, nil
}

// firstBundle is what the subscription begins with, as far as its catalog says it alone: its startingCSV, else the head of
// its channel, or of the default one.
func firstBundle(in model.SubscriptionSpec, p *libcatalog.Package) (libcatalog.Bundle, bool) {
	if p == nil {
		return libcatalog.Bundle{}, false
	}
	if in.StartingCSV != "" {
		return p.Bundle(in.StartingCSV)
	}
	for _, c := range p.Channels {
		if c.Name == cmp.Or(in.Channel, p.DefaultChannel) {
			return display.Head(p, c)
		}
	}
	return libcatalog.Bundle{}, false
}

// warned returns the warnings of an intent, and gives them to its unit, which answers for it.
func warned(ctx context.Context, warnings []string) []string {
	if u := unitOf(ctx); u != nil {
		u.warnings = append(u.warnings, warnings...)
	}
	return warnings
}

// canonicalConfig returns the configuration as canonical JSON, nil where there is none.
func canonicalConfig(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var v rule.Violations
	if len(raw) > maxConfigBytes {
		v.Addf("/config", rule.MaxLength, "config has %d bytes, %d are allowed", len(raw), maxConfigBytes)
		return nil, v.Err()
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		v.Addf("/config", rule.Object, "config must be an object")
		return nil, v.Err()
	}
	names := make([]string, 0, len(keys))
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		if !slices.Contains(configKeys, k) {
			v.Addf("/config", rule.OneOf, "config has the unknown key %q: want some of %s", k, strings.Join(configKeys, ", "))
		}
	}
	if err := v.Err(); err != nil || len(keys) == 0 {
		return nil, err
	}
	if wrong := render.CheckConfig(raw); len(wrong) > 0 {
		return nil, &rule.Error{Violations: wrong}
	}
	body, err := digest.Canonical(raw)
	return body, errs.Wrap(errs.Invalid, err, "config cannot be written as canonical JSON")
}

// checkOffer carries out "Gateway checks" of DESIGN and returns what was compared with: only a ready catalog is a reason to refuse,
// unless the caller wants it stricter or not at all. Without a ready one nothing could be compared, which is a warning.
func (s *Service) checkOffer(ctx context.Context, tx pgx.Tx, who model.Caller, name subscription.Name, in model.SubscriptionSpec, how model.Validate) (offer catalog.Offer, warnings []string, err error) {
	if how == model.ValidateLenient {
		return offer, nil, nil
	}
	subject, known, err := s.findCatalog(ctx, tx, who.Tenant, name, in)
	if err != nil {
		return offer, nil, err
	}
	if known {
		if offer, err = s.Catalogs.Offer(ctx, tx, who.Tenant, subject, name.Cluster, in.Package); err != nil {
			return offer, nil, err
		}
	}
	switch {
	case offer.Ready:
		return offer, nil, checkPackage(in, offer)
	case how == model.ValidateStrict && !known:
		return offer, nil, errs.New(errs.Unprocessable, "no catalog %q is known, and validate=strict was asked for", subject).At("/catalog", "catalog-known")
	case how == model.ValidateStrict:
		return offer, nil, errs.New(errs.Unprocessable, "catalog %q is not ready, and validate=strict was asked for", subject).At("/catalog", "catalog-ready")
	case !known:
		return offer, []string{fmt.Sprintf("no catalog %q is known: nothing is planned until there is one, and package %q could not be checked", subject, in.Package)}, nil
	default:
		return offer, []string{fmt.Sprintf("catalog %q is not ready yet: nothing is planned until it is, and package %q could not be checked", subject, in.Package)}, nil
	}
}

// findCatalog names the catalog that a subscription means: the cluster's own one of that namespace,
// or the hub's. One that the subscription's namespace does not see is not known there, and the hub's of that name is not
// meant (R-CAT-85).
func (s *Service) findCatalog(ctx context.Context, tx pgx.Tx, tenant string, name subscription.Name, in model.SubscriptionSpec) (subject string, known bool, err error) {
	candidates := []string{in.Catalog}
	if in.CatalogNamespace != "" {
		own := catalog.Name{Cluster: name.Cluster, Namespace: in.CatalogNamespace, Name: in.Catalog}
		candidates = []string{own.Subject(), in.Catalog}
	}
	for _, c := range candidates {
		head, err := s.Log.Latest(ctx, tx, tenant, events.KindCatalog, c)
		if err != nil {
			return "", false, err
		}
		if !head.Exists() {
			continue
		}
		if c != in.Catalog && in.CatalogNamespace != name.Namespace {
			state, err := replay(ctx, s, tx, tenant, catalogs, head, catalog.State{})
			if err != nil {
				return "", false, err
			}
			if state.Spec.Visibility.Namespace != "" && !state.Spec.Disabled {
				return c, false, nil
			}
		}
		return c, true, nil
	}
	return candidates[0], false, nil
}

func checkPackage(in model.SubscriptionSpec, offer catalog.Offer) error {
	if offer.Package == nil {
		return errs.New(errs.Unprocessable, "catalog %q has no package %q; it has: %s", in.Catalog, in.Package, choices(offer.Packages)).
			At("/package", "package-in-catalog")
	}
	if in.Channel != "" && !slices.ContainsFunc(offer.Package.Channels, func(c libcatalog.Channel) bool { return c.Name == in.Channel }) {
		return errs.New(errs.Unprocessable, "package %q of catalog %q has no channel %q; it has: %s",
			in.Package, in.Catalog, in.Channel, choices(channelNames(offer.Package))).At("/channel", "channel-in-package")
	}
	if in.StartingCSV == "" {
		return nil
	}
	entries := entryNames(offer.Package, in.Channel)
	if !slices.Contains(entries, in.StartingCSV) {
		return errs.New(errs.Unprocessable, "package %q of catalog %q has no entry %q to start with; it has: %s",
			in.Package, in.Catalog, in.StartingCSV, choices(entries)).At("/startingCSV", "entry-in-channel")
	}
	return nil
}

func channelNames(p *libcatalog.Package) []string {
	names := make([]string, 0, len(p.Channels))
	for _, c := range p.Channels {
		names = append(names, c.Name)
	}
	return names
}

// entryNames lists the entries of a channel, of all channels without one, sorted.
func entryNames(p *libcatalog.Package, channel string) []string {
	var names []string
	for _, c := range p.Channels {
		if channel != "" && c.Name != channel {
			continue
		}
		for _, e := range c.Entries {
			names = append(names, e.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// choices writes a bounded list.
func choices(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	if extra := len(names) - maxChoices; extra > 0 {
		return strings.Join(names[:maxChoices], ", ") + fmt.Sprintf(" and %d more", extra)
	}
	return strings.Join(names, ", ")
}

func subscriptionAnswer(out outcome[subscription.State], in model.ChangeSubscription) model.Subscription {
	n := out.State.Name
	in.Approval = out.State.Spec.Approval
	return model.Subscription{
		Cluster: n.Cluster, Namespace: n.Namespace, Name: n.Name, Metadata: in.Kept(), Spec: in.SubscriptionSpec,
		Status:    model.SubscriptionStatus{Conditions: []model.Condition{}},
		CreatedAt: out.Time, UpdatedAt: out.Time,
		Stream: out.Stream.String(), Version: out.Version, Position: out.Position,
	}
}
