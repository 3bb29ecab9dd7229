package hub

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/allowance"
	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/installplan/terms"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
)

// What the hub checks itself before it signs a grant (ADR 0034). The resolver says what is to be done and the indexer
// what there is; neither can have anything done that people have not asked for, allowed or signed.

// refusal is why a plan that may begin gets no grant: a code of events, and words. Its zero value is none.
type refusal struct{ reason, why string }

// refusedAgain is after which time a plan that was refused is looked at again: what it lacks may come without an event,
// as signatures do that are fetched again.
const refusedAgain = time.Minute

// judge says why a plan that has not begun gets no grant. One that has begun is brought to its end (DESIGN D6).
func judge(ctx context.Context, c *contents, tx pgx.Tx, s protocol.Scope, p planRow) (refusal, error) {
	bundles, err := bundlesOf(p)
	if err != nil { // of a plan that nobody can read nothing can be judged
		return refusal{events.PlanUnreadable, "its document cannot be read: " + err.Error()}, nil //nolint:nilerr // it is the answer
	}
	j := judgement{content: c, tx: tx, scope: s, plan: p, bundles: bundles}
	for _, check := range []func(context.Context) (refusal, error){j.terms, j.signatures, j.allowances} {
		if r, err := check(ctx); err != nil || r != (refusal{}) {
			return r, err
		}
	}
	return refusal{}, nil
}

// bundlesOf are the bundles that a plan names: those of its document, by which executors go, and those of the event,
// that people were shown.
func bundlesOf(p planRow) ([]events.PlannedBundle, error) {
	var d installplan.Document
	if err := json.Unmarshal(p.document, &d); err != nil {
		return nil, err
	}
	out := slices.Clone(p.state.Proposed.Bundles)
	for _, b := range d.Bundles {
		if !slices.ContainsFunc(out, func(o events.PlannedBundle) bool {
			return o.CSV == b.CSV && o.Content == b.Content && o.Catalog == b.Catalog && o.Version == b.Version
		}) {
			out = append(out, b)
		}
	}
	return out, nil
}

// judgement is the look at one plan.
type judgement struct {
	content *contents
	tx      pgx.Tx
	scope   protocol.Scope
	plan    planRow
	bundles []events.PlannedBundle
}

// terms compares what the intents in the log ask for with what the plan says: whether people have to approve it, how
// many, for how long, and when it may begin.
func (j judgement) terms(ctx context.Context) (refusal, error) {
	subs, err := j.subscriptions(ctx)
	if err != nil {
		return refusal{}, err
	}
	there, err := j.installed(ctx)
	if err != nil {
		return refusal{}, err
	}
	policies, err := j.policies(ctx)
	if err != nil {
		return refusal{}, err
	}
	var broken error
	bundles := j.termsOf(subs, there)
	t := terms.Of(j.mode(subs, there), bundles, policies, func(from, to string) (gained int, known bool) {
		gained, known, err := j.content.growth(ctx, j.tx, j.scope.Tenant, digest.Digest(from), digest.Digest(to))
		if err != nil {
			broken = err
		}
		return gained, known
	})
	if broken != nil {
		return refusal{}, broken
	}
	if what := t.Exceeds(j.plan.state.Proposed); what != "" {
		return refusal{events.ApprovalDiffers, what}, nil
	}
	return refusal{}, nil
}

// mode is that of the subscriptions that the plan serves: Manual if one of them is (R-SUB-4). They are found by the
// packages that the plan brings, by those that it says need them, and by name.
func (j judgement) mode(subs map[string]subscription, there []operator) string {
	packages, names := strings.Split(j.plan.state.Proposed.Component, "+"), []string{}
	for _, b := range j.bundles {
		packages, names = append(packages, b.Package), append(names, b.Subscriptions...)
		for _, o := range there {
			if o.csv == b.RequiredBy {
				packages = append(packages, o.pkg)
			}
		}
	}
	for name, s := range subs {
		if s.Approval == installplan.Manual && (slices.Contains(packages, s.Package) || slices.Contains(names, name)) {
			return installplan.Manual
		}
	}
	return installplan.Automatic
}

// termsOf are the bundles as terms depend on them. A way back that a rollout asks for in the log was decided by whoever
// asked for the rollback of that.
func (j judgement) termsOf(subs map[string]subscription, there []operator) []terms.Bundle {
	out := make([]terms.Bundle, 0, len(j.bundles))
	for _, b := range j.bundles {
		one := terms.Bundle{
			Package: b.Package, Version: b.Version, Catalog: b.Catalog, Content: b.Content,
			Rollback: b.Reason == events.ReasonRollback && !asked(subs, b),
		}
		if from := predecessor(there, b); from != nil {
			one.From = &terms.Installed{Version: from.version, Content: from.content}
		}
		out = append(out, one)
	}
	return out
}

// asked says whether a rollout has one of the subscriptions that a bundle serves go back to it.
func asked(subs map[string]subscription, b events.PlannedBundle) bool {
	return slices.ContainsFunc(b.Subscriptions, func(name string) bool {
		s, there := subs[name]
		return there && s.goesBackTo == b.CSV && s.Package == b.Package
	})
}

// subscription is one of the plan's namespace.
type subscription struct {
	events.SubscriptionSpec

	goesBackTo string // CSV that a rollout has it go back to; "" for none
}

// operator is one that is installed in the plan's namespace.
type operator struct{ csv, pkg, version, content, phase string }

// predecessor is the installed operator whose place a bundle takes; nil where it is new. What the plan says that it
// replaces counts only where that is of the same package.
func predecessor(there []operator, b events.PlannedBundle) *operator {
	var found *operator
	for i := range there {
		o := &there[i]
		switch {
		case o.csv == b.CSV: // written already by this very plan, whose start is not known yet
		case o.csv == b.Replaces && (o.pkg == "" || o.pkg == b.Package):
			return o
		case o.pkg == b.Package && o.phase != "Replacing" && o.phase != "Deleting" && found == nil:
			found = o
		}
	}
	return found
}

// subscriptions are those of the namespace, by name.
func (j judgement) subscriptions(ctx context.Context) (map[string]subscription, error) {
	rows, err := j.tx.Query(ctx, `select name, spec, goes_back_to from installer.subscriptions where tenant = $1
		and cluster = $2 and namespace = $3`, j.scope.Tenant, j.scope.Cluster, j.scope.Namespace)
	if err != nil {
		return nil, err
	}
	out := map[string]subscription{}
	var name, back string
	var spec events.SubscriptionSpec
	_, err = pgx.ForEachRow(rows, []any{&name, &spec, &back}, func() error {
		out[name] = subscription{spec, back}
		spec = events.SubscriptionSpec{}
		return nil
	})
	return out, err
}

// installed are the operators of the namespace. Their content is what their plans brought, where that is known: what a
// cluster reports says less.
func (j judgement) installed(ctx context.Context) ([]operator, error) {
	rows, err := j.tx.Query(ctx, `select c.name, c.package, c.version, coalesce((
		  select b ->> 'content' from jsonb_array_elements(p.state -> 'Proposed' -> 'bundles') b
		  where b ->> 'csv' = c.name limit 1), c.content), c.phase
		from installer.csvs c
		left join installer.plans p on p.tenant = c.tenant and p.cluster = c.cluster and p.namespace = c.namespace
		  and p.plan = case when c.plan ~ '^[0-9a-f-]{36}$' then c.plan::uuid end
		  and jsonb_typeof(p.state -> 'Proposed' -> 'bundles') = 'array'
		where c.tenant = $1 and c.cluster = $2 and c.namespace = $3 order by c.name`,
		j.scope.Tenant, j.scope.Cluster, j.scope.Namespace)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(r pgx.CollectableRow) (o operator, err error) {
		return o, r.Scan(&o.csv, &o.pkg, &o.version, &o.content, &o.phase)
	})
}

// policies are the approval policies of the namespace, by name.
func (j judgement) policies(ctx context.Context) ([]terms.Policy, error) {
	labels := map[string]string{}
	if err := j.tx.QueryRow(ctx, `select labels from installer.clusters where tenant = $1 and name = $2
		and not removed`, j.scope.Tenant, j.scope.Cluster).Scan(&labels); err != nil {
		return nil, err
	}
	rows, err := j.tx.Query(ctx, `select name, spec from installer.approval_policies where tenant = $1 order by name`,
		j.scope.Tenant)
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p terms.Policy, err error) {
		return p, r.Scan(&p.Name, &p.Spec)
	})
	return terms.In(all, j.scope.Cluster, j.scope.Namespace, labels), err
}

// allowances wants an administrator's word where a bundle would give the cluster away (DESIGN D10), by what its content
// is rendered to. A bundle that breaks a rule of rendering is the executor's to refuse, who cannot go on with it.
func (j judgement) allowances(ctx context.Context) (refusal, error) {
	by := j.plan.state.Proposed.Rendering
	if render.Known.Presence(by) != render.Present {
		by = render.Known.Newest() // an executor without these rules does not begin; one that has them is told as much
	}
	var objects []render.Object
	for _, b := range j.bundles {
		content, err := j.content.bundle(ctx, j.tx, j.scope.Tenant, digest.Digest(b.Content))
		if errs.Is(err, errs.NotFound) {
			return refusal{events.PlanUnreadable, err.Error()}, nil
		}
		if err != nil {
			return refusal{}, err
		}
		config, err := j.config(ctx, b.CSV)
		if err != nil {
			return refusal{}, err
		}
		made, err := render.Known.Render(by,
			render.Input{Content: content, Namespace: j.scope.Namespace, Config: config})
		if err != nil {
			return refusal{}, nil //nolint:nilerr // see above
		}
		objects = append(objects, made...)
	}
	found, err := allowance.Of(j.bundles, objects, choices(j.plan.state))
	if err != nil {
		return refusal{}, err
	}
	if missing := allowance.Missing(found); missing != "" {
		return refusal{events.AllowanceNeeded, missing}, nil
	}
	return refusal{}, nil
}

// config is the configuration that a bundle is rendered with, nil for none.
func (j judgement) config(ctx context.Context, csv string) (json.RawMessage, error) {
	commitment, ok := j.plan.configs[csv]
	if !ok {
		return nil, nil
	}
	return readBody(ctx, j.tx, j.content.bodies, j.scope.Tenant, commitment)
}

// bundle reads a content by its digest. One that the catalog schema does not hold is errs.NotFound.
func (c *contents) bundle(ctx context.Context, tx pgx.Tx, tenant string, d digest.Digest) (bundle.Content, error) {
	s, err := stored(ctx, tx, tenant, d)
	if err != nil {
		return bundle.Content{}, err
	}
	canonical, err := c.reader.Bundle(d, s)
	if err != nil {
		return bundle.Content{}, err
	}
	out, _, err := bundle.FromCanonical(canonical)
	return out, err
}

// growth is how many rights an upgrade gains, compared here and now: the indexer's comparison is for people. known is
// false where one of the two cannot be read or compared.
func (c *contents) growth(ctx context.Context, tx pgx.Tx, tenant string, from, to digest.Digest) (
	gained int, known bool, err error,
) {
	key := string(from) + " " + string(to)
	c.mu.Lock()
	gained, known = c.grown[key]
	c.mu.Unlock()
	if known {
		return gained, true, nil
	}
	var both [2]bundle.Content
	for i, d := range []digest.Digest{from, to} {
		both[i], err = c.bundle(ctx, tx, tenant, d)
		switch errs.KindOf(err) {
		case "":
		case errs.Invalid, errs.Unprocessable, errs.TooLarge, errs.NotFound:
			return 0, false, nil
		default:
			return 0, false, err
		}
	}
	d, err := compare.Bundles(both[0], both[1])
	if err != nil {
		return 0, false, nil // what is wrong with a bundle is an answer: a person is asked
	}
	gained = d.Growth()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.grown) >= knownLimit {
		clear(c.grown)
	}
	c.grown[key] = gained
	return gained, true, nil
}
