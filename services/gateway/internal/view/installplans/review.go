package installplans

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/operatorgroup"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/planreview"
)

// maxConfigs bounds how many earlier configurations of its subscriptions a plan is rendered with, until its digests
// fit: a configuration that changes makes another plan, so that the newest one before a plan is almost always it.
const maxConfigs = 8

// Review is what somebody sees of a plan before they approve it.
type Review struct {
	Plan  model.InstallPlan
	Place planreview.Place
	// Bundles are in the order of the plan.
	Bundles []ReviewedBundle
}

// ReviewedBundle is one bundle of a plan, rendered again and compared with the digests of its steps.
type ReviewedBundle struct {
	model.ReviewBase

	To    planreview.Side
	Steps []int            // numbers of the steps, one for each object
	From  *planreview.Side // nil where nothing is installed, or it is not known what
}

// material is what is read of a bundle in the transaction; it is unpacked and rendered behind it.
type material struct {
	planned events.PlannedBundle
	content content.StoredBundle
	// configs are what it may have been rendered with, the likeliest first; gone says what became of one that is not
	// among them.
	configs      []json.RawMessage
	gone         string
	confidential bool
	base         model.ReviewBase
	from         *content.StoredBundle
}

// Review renders the bundles of a plan, and what they replace. What is returned is what the plan's digest binds, or an
// error says why it cannot be shown: content is kept as long as a revision or an operator refers to it.
func (r *Reader) Review(ctx context.Context, who model.Caller, id string) (Review, error) {
	w := readmodel.Tenant("p.tenant", who.Tenant)
	w.Add("p.id = ?", id)
	w.Within(who, access.Get, access.InstallPlans, places)
	var out Review
	var doc installplan.Document
	var found []material
	err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, errs.New(errs.NotFound, "there is no install plan %s", id))
		if err != nil {
			return err
		}
		out.Plan = x.State.InstallPlanAt(x.Now)
		if doc, err = document(ctx, tx, who.Tenant, x.State.Plan.Proposed); err != nil {
			return err
		}
		if out.Place, err = place(ctx, tx, who, out.Plan); err != nil {
			return err
		}
		at := events.Position{Epoch: x.Epoch, N: x.Position}
		for _, b := range x.State.Plan.Proposed.Bundles {
			m, err := r.material(ctx, tx, who, out.Plan, b, at)
			if err != nil {
				return err
			}
			found = append(found, m)
		}
		return nil
	})
	if err != nil {
		return Review{}, err
	}
	for _, m := range found {
		b, err := r.reviewed(ctx, m, doc, out.Plan.Name)
		if err != nil {
			return Review{}, err
		}
		out.Bundles = append(out.Bundles, b)
	}
	return out, nil
}

// document is the content of a plan, as its digest binds it.
func document(
	ctx context.Context, tx pgx.Tx, tenant string, p events.InstallPlanProposed,
) (doc installplan.Document, err error) {
	raw, err := readmodel.Document(ctx, tx, `select document from resolver_api.plan_documents
		where tenant = $1 and plan = $2`, tenant, p.Plan)
	if err != nil {
		return doc, err
	}
	if raw == nil {
		return doc, errs.New(errs.NotFound, "the content of install plan %s is not kept any more", p.Name).At("",
			planreview.Rule)
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return doc, errs.Wrap(errs.Internal, err, "read the content of install plan %s", p.Name)
	}
	d, err := doc.Digest()
	if err == nil && string(d) != p.Digest {
		return doc, errs.New(errs.Conflict, "what is stored of install plan %s has digest %s, and the plan has %s: it is "+
			"not shown", p.Name, d, p.Digest).At("", planreview.Rule)
	}
	return doc, err
}

// place is where the rights of an operator's namespaces hold: those of the one operator group of its namespace.
func place(ctx context.Context, tx pgx.Tx, who model.Caller, p model.InstallPlan) (at planreview.Place, err error) {
	if !who.May(access.Get, access.OperatorGroups, access.Target{Cluster: p.Cluster, Namespace: p.Namespace}) {
		return at, nil
	}
	rows, err := tx.Query(ctx, `select spec, targets from operatorgroups
		where tenant = $1 and cluster = $2 and namespace = $3 limit 2`, who.Tenant, p.Cluster, p.Namespace)
	if err != nil {
		return at, err
	}
	type group struct {
		Spec    events.OperatorGroupSpec
		Targets []string
	}
	groups, err := pgx.CollectRows(rows, pgx.RowToStructByName[group])
	if err != nil || len(groups) != 1 {
		return at, err
	}
	targets := groups[0].Targets
	if named, ok := operatorgroup.Named(groups[0].Spec); ok {
		targets = named
	}
	if operatorgroup.Global(targets) {
		return planreview.Place{Known: true, All: true}, nil
	}
	return planreview.Place{Known: true, Namespaces: targets}, nil
}

// material reads what a bundle is rendered from, and what it replaces.
func (r *Reader) material(ctx context.Context, tx pgx.Tx, who model.Caller, p model.InstallPlan,
	b events.PlannedBundle, at events.Position,
) (m material, err error) {
	m.planned = b
	m.base = model.ReviewBase{
		CSV: b.CSV, Package: b.Package, Content: b.Content, Replaces: b.Replaces, State: model.ReviewFirst,
	}
	m.confidential = !who.May(access.Update, access.Subscriptions, access.Target{
		Cluster: p.Cluster, Namespace: p.Namespace, Catalog: b.Catalog,
	})
	if m.content, err = r.Content.StoredBundle(ctx, tx, who.Tenant, b.Content); err != nil {
		return m, notKept(err, p.Name, b.CSV)
	}
	if err := r.addConfigs(ctx, tx, who.Tenant, p, at, &m); err != nil || b.Replaces == "" {
		return m, err
	}
	m.base.State = model.ReviewUnknown
	m.base.ReplacedContent, m.base.ReplacedRendering, err = installed(ctx, tx, who.Tenant, p.Cluster, p.Namespace,
		b.Replaces)
	if err != nil {
		return m, err
	}
	if m.base.ReplacedContent == "" {
		m.base.Detail = "nothing is known of where " + b.Replaces + " came from"
		return m, nil
	}
	from, err := r.Content.StoredBundle(ctx, tx, who.Tenant, m.base.ReplacedContent)
	if errs.Is(err, errs.NotFound) {
		m.base.Detail = "the manifests of " + b.Replaces + " are not kept any more"
		return m, nil
	}
	m.from = &from
	return m, err
}

// notKept says that the content of a bundle is gone.
func notKept(err error, plan, csv string) error {
	if errs.Is(err, errs.NotFound) {
		return errs.New(errs.NotFound, "the objects of install plan %s cannot be shown: the manifests of %s are not kept "+
			"any more", plan, csv).At("", planreview.Rule)
	}
	return err
}

// addConfigs adds the configurations with which a bundle may have been rendered: those of its subscriptions that were
// known when the plan was proposed, the newest first, and none at all.
func (r *Reader) addConfigs(
	ctx context.Context, tx pgx.Tx, tenant string, p model.InstallPlan, at events.Position, m *material,
) error {
	seen := map[string]bool{}
	for _, name := range m.planned.Subscriptions {
		natural := p.Cluster + "/" + p.Namespace + "/" + name[strings.LastIndex(name, "/")+1:]
		head, err := r.Log.Latest(ctx, tx, tenant, events.KindSubscription, natural)
		if err != nil {
			return err
		}
		oldest := max(0, head.ID.Incarnation-maxConfigs)
		for ; head.ID.Incarnation > oldest && len(seen) < maxConfigs; head.ID.Incarnation-- {
			life, err := r.Log.ReadStream(ctx, tx, tenant, head.ID, 0)
			if err != nil {
				return err
			}
			if err := r.addLife(ctx, tx, tenant, life, at, seen, m); err != nil {
				return err
			}
		}
		if head.ID.Incarnation > 0 && m.gone == "" {
			m.gone = "is not looked for farther back"
		}
	}
	m.configs = append(m.configs, nil)
	return nil
}

// addLife adds those of one life of a subscription.
func (r *Reader) addLife(
	ctx context.Context, tx pgx.Tx, tenant string, life []eventlog.Recorded, at events.Position, seen map[string]bool,
	m *material,
) error {
	for i := len(life) - 1; i >= 0 && len(seen) < maxConfigs; i-- {
		commitment, ok := configured(life[i].Payload)
		if !ok || commitment == "" || seen[commitment] || !life[i].Position.Less(at) {
			continue
		}
		seen[commitment] = true
		if err := r.addConfig(ctx, tx, tenant, commitment, m); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) addConfig(ctx context.Context, tx pgx.Tx, tenant, commitment string, m *material) error {
	opened, err := r.Bodies.Read(ctx, tx, tenant, commitment)
	if err != nil {
		return err
	}
	switch body := opened[commitment]; {
	case body.Err != nil:
		m.gone = "cannot be opened"
	case body.Text == nil:
		m.gone = "was erased"
	default:
		m.configs = append(m.configs, body.Text)
	}
	return nil
}

// configured is the commitment of the configuration that an event gives a subscription.
func configured(p events.Payload) (commitment string, ok bool) {
	switch e := p.(type) {
	case events.SubscriptionCreated:
		return e.Spec.Config, true
	case events.SubscriptionPlaced:
		return e.Spec.Config, true
	case events.SubscriptionChanged:
		return e.Spec.Config, true
	default:
		return "", false
	}
}

// reviewed renders a bundle with the configuration by which the digests of its steps come about.
func (r *Reader) reviewed(
	ctx context.Context, m material, doc installplan.Document, plan string,
) (ReviewedBundle, error) {
	out := ReviewedBundle{ReviewBase: m.base}
	steps, numbers := planreview.Steps(doc, m.planned.CSV)
	unpacked, err := r.Content.Unpack(m.content)
	if err != nil {
		return out, err
	}
	source := planreview.Source{
		CSV: m.planned.CSV, Namespace: doc.Namespace, Rendering: doc.Rendering, Content: unpacked,
		Confidential: m.confidential,
	}
	fits, err := m.render(ctx, &source, steps, plan, &out)
	if err != nil {
		return out, err
	}
	switch {
	case fits:
	case m.gone != "":
		return out, errs.New(errs.NotFound, "the objects of install plan %s cannot be shown: a configuration of the "+
			"subscriptions of %s %s", plan, m.planned.CSV, m.gone).At("", planreview.Rule)
	default:
		return out, errs.New(errs.Conflict, "what is stored of %s does not render to the steps of install plan %s: it is "+
			"not shown", m.planned.CSV, plan).At("", planreview.Rule)
	}
	out.Steps = numbers
	if m.from != nil {
		err = r.addInstalled(ctx, m, source, &out)
	}
	return out, err
}

// render tries the configurations until the digests of the steps come about; false where they do by none.
func (m material) render(
	ctx context.Context, source *planreview.Source, steps []installplan.Step, plan string, out *ReviewedBundle,
) (fits bool, err error) {
	for _, config := range m.configs {
		if err := ctx.Err(); err != nil {
			return false, errs.Wrap(errs.Unavailable, err, "render install plan %s", plan)
		}
		source.Config = config
		objects, err := planreview.Render(*source)
		switch errs.KindOf(err) {
		case "":
		case errs.NotFound:
			return false, errs.New(errs.NotFound, "the objects of install plan %s cannot be shown: %s", plan,
				err.Error()).At("", planreview.Rule)
		case errs.Internal, errs.Unavailable:
			return false, err
		default: // a configuration that does not go with this bundle is not the one
			continue
		}
		if planreview.Matches(steps, objects) {
			out.To = planreview.Side{Content: source.Content, Objects: objects}
			return true, nil
		}
	}
	return false, nil
}

// addInstalled renders what is installed: by the rules that brought it, and with the configuration of the plan, since
// installed operators take over another configuration at once (R-SUB-13).
func (r *Reader) addInstalled(ctx context.Context, m material, source planreview.Source, out *ReviewedBundle) error {
	if err := ctx.Err(); err != nil {
		return errs.Wrap(errs.Unavailable, err, "render %s", m.base.Replaces)
	}
	var err error
	if source.Content, err = r.Content.Unpack(*m.from); err != nil {
		return err
	}
	source.CSV, source.Rendering = m.base.Replaces, m.base.ReplacedRendering
	if source.Rendering == "" {
		source.Rendering = render.Known.Newest()
	}
	objects, err := planreview.Render(source)
	if err != nil {
		out.Detail = "the manifests of " + m.base.Replaces + " cannot be rendered"
		if !m.confidential { // the sentence can hold parts of the configuration
			out.Detail += ": " + err.Error()
		}
		return nil
	}
	out.From, out.State = &planreview.Side{Content: source.Content, Objects: objects}, model.ReviewCompared
	return nil
}

// installed is the content of a bundle that a namespace has, or had when the plan that took its place is over, and the
// rules by which it was rendered; "" where that is not known.
func installed(
	ctx context.Context, q pg.Querier, tenant, cluster, namespace, csv string,
) (bundled, rendering string, err error) {
	err = pg.Err(q.QueryRow(ctx, `select content, rendering from (
		select 0 as rank, content, coalesce((select p.state -> 'Plan' -> 'Proposed' ->> 'rendering' from installplans p
				where p.tenant = o.tenant and p.cluster = o.cluster and p.namespace = o.namespace and p.phase = 'Complete'
				and p.bundles @> jsonb_build_array(jsonb_build_object('csv', o.name, 'content', o.content))
				order by p.epoch desc, p.position desc limit 1), '') as rendering, 0::bigint as epoch, 0::bigint as position
			from operators o where tenant = $1 and cluster = $2 and namespace = $3 and name = $4
		union all
		select 1, x->>'content', coalesce(p.state -> 'Plan' -> 'Proposed' ->> 'rendering', ''), p.epoch, p.position
			from installplans p, jsonb_array_elements(p.bundles) x
			where p.tenant = $1 and p.cluster = $2 and p.namespace = $3 and p.phase = 'Complete'
			and x->>'csv' = $4) known
		where content <> '' order by rank, epoch desc, position desc limit 1`, tenant, cluster, namespace, csv).
		Scan(&bundled, &rendering))
	if errs.Is(err, errs.NotFound) {
		return "", "", nil
	}
	return bundled, rendering, err
}
