package view

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func planTypes() []events.Type {
	return typesOf(events.InstallPlanProposed{}, events.InstallPlanSuperseded{}, events.InstallPlanApproved{},
		events.InstallPlanApprovalGiven{}, events.InstallPlanObstaclesSettled{}, events.InstallPlanRejected{}, events.InstallPlanMetadataChanged{},
		events.InstallPlanStarted{}, events.InstallPlanBlocked{}, events.InstallPlanFinished{}, events.InstallPlanFailed{})
}

func installPlansProjection() projection.Projection {
	return projection.Projection{
		Name: InstallPlans, Version: 4, Schema: schema, Tables: []string{"installplans"}, Types: planTypes(), Apply: applyPlan,
	}
}

func applyPlan(ctx context.Context, tx pgx.Tx, t projection.Tables, e eventlog.Recorded) error {
	if p, ok := e.Payload.(events.InstallPlanProposed); ok {
		return applyProposed(ctx, tx, t.Name("installplans"), e, p)
	}
	set, args, err := planChange(e)
	if err != nil {
		return err
	}
	sql := `update ` + t.Name("installplans") + ` set updated = $3, version = $4, ` + set + ` where tenant = $1 and stream = $2`
	return exec(ctx, tx, sql, append([]any{e.Tenant, e.Stream, e.Time, e.Version}, args...)...)
}

func applyProposed(ctx context.Context, tx pgx.Tx, table string, e eventlog.Recorded, p events.InstallPlanProposed) error {
	phase := installplan.Installing
	if p.Approval == installplan.Manual {
		phase = installplan.RequiresApproval
	}
	return exec(ctx, tx, `insert into `+table+` (tenant, id, cluster, namespace, name, generation, component, approval, phase, begun,
			digest, document, steps, base, bundles, blocked_class, blocked_reason, failed_step, failed_reason, superseded_by, step_log, approved_by,
			epoch, position, proposed, updated, stream, version, policies, manual_reasons, approvers, approval_seconds, windows)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, false, $10, $11, $12, $13, $14, '', '', 0, '', '', '', '', $15, $16, $17, $17, $18, $19,
			coalesce($20::jsonb, '[]'), coalesce($21::jsonb, '[]'), $22, $23, coalesce($24::jsonb, '[]'))`,
		e.Tenant, p.Plan, p.Cluster, p.Namespace, p.Name, p.Generation, p.Component, p.Approval, string(phase),
		p.Digest, p.Document, p.Steps, p.Base, p.Bundles, e.Position.Epoch, e.Position.N, e.Time, e.Stream, e.Version,
		jsonOf(p.Policies), jsonOf(p.ManualReasons), p.Approvers, p.ApprovalSeconds, jsonOf(p.Windows))
}

// jsonOf is a list for a jsonb column; nil is null there.
func jsonOf[T any](list []T) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// planChange is what an event changes in a plan's row; its arguments count from $5. It follows
// installplan.Evolve: facts win, so a start revives a plan that was superseded or rejected.
func planChange(e eventlog.Recorded) (set string, args []any, err error) {
	const unblocked = `blocked_class = '', blocked_reason = ''`
	switch p := e.Payload.(type) {
	case events.InstallPlanSuperseded:
		return `phase = 'Superseded', superseded_by = $5, ended = $3`, []any{p.By}, nil
	case events.InstallPlanApproved:
		return `phase = 'Installing', approved_by = $5, approved = $3, approval_expires = $7, consents = '[]', approvals = ` + consentsAnd,
			[]any{e.Actor, model.PlanApproval{By: e.Actor, At: e.Time, Expires: p.Expires}, p.Expires}, nil
	case events.InstallPlanApprovalGiven:
		return `consents = ` + consentsAnd, []any{p.By, model.PlanApproval{By: p.By, At: e.Time, Expires: p.Expires}}, nil
	case events.InstallPlanObstaclesSettled:
		return `choices = ` + choicesAnd, []any{p.By, jsonOf(choicesOf(p, e.Time)), choiceObjects(p)}, nil
	case events.InstallPlanMetadataChanged:
		return `labels = $5, annotations = $6`, []any{labelsOf(p.Metadata), p.Metadata.Annotations}, nil
	case events.InstallPlanRejected:
		return `phase = 'Rejected', ended = $3`, nil, nil
	case events.InstallPlanStarted:
		return `phase = 'Installing', begun = true, started = $3, ended = null, superseded_by = '', ` + unblocked, nil, nil
	case events.InstallPlanBlocked:
		return `blocked_class = $5, blocked_reason = $6`, []any{p.Class, p.Reason}, nil
	case events.InstallPlanFinished:
		return `phase = 'Complete', step_log = $5, ended = $3, ` + unblocked, []any{p.StepLog}, nil
	case events.InstallPlanFailed:
		return `phase = 'Failed', step_log = $5, failed_step = $6, failed_reason = $7, ended = $3, ` + unblocked,
			[]any{p.StepLog, p.Step, p.Reason}, nil
	default:
		return "", nil, unknown(e)
	}
}

// consentsAnd are the consents of others that have not expired, and the one of this event.
const consentsAnd = `(select coalesce(jsonb_agg(c), '[]') from jsonb_array_elements(consents) c
	where c ->> 'by' <> $5 and (c ->> 'expires')::timestamptz > $3) || $6::jsonb`

// choicesAnd are the choices before, but those of the same person of the same objects, and those of this event.
const choicesAnd = `(select coalesce(jsonb_agg(c), '[]') from jsonb_array_elements(choices) c
	where not (c ->> 'by' = $5 and c ->> 'object' = any($7))) || $6::jsonb`

// planChoice is a choice as the row of its plan has it.
type planChoice struct {
	events.PlanChoice
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func choicesOf(p events.InstallPlanObstaclesSettled, at time.Time) []planChoice {
	out := make([]planChoice, 0, len(p.Choices))
	for _, c := range p.Choices {
		out = append(out, planChoice{c, p.By, at})
	}
	return out
}

func choiceObjects(p events.InstallPlanObstaclesSettled) []string {
	out := make([]string, 0, len(p.Choices))
	for _, c := range p.Choices {
		out = append(out, c.Object)
	}
	return out
}

// shownPhase is installplan.State.PhaseAt in SQL: an approval that expired before the first step is void.
const shownPhase = `case when p.phase = 'Installing' and p.approval = 'Manual' and not p.begun and p.approval_expires <= now()
	then 'RequiresApproval' else p.phase end`

// planColumns have the annotations in lists, too: who applies a list of plans again must not take them away, and the whole
// of each plan is large.
const planColumns = `select p.id, p.cluster, p.namespace, p.name, p.generation, p.component, p.approval, ` + shownPhase + `, p.begun, p.digest,
	p.steps, p.base, p.bundles, p.blocked_class, p.blocked_reason, p.failed_step, p.failed_reason, p.superseded_by, p.approved_by, p.approved,
	p.approval_expires, p.proposed, p.started, p.ended, p.updated, p.stream, p.version, p.step_log, p.epoch, p.position,
	p.policies, p.manual_reasons, p.approvers, p.approval_seconds, p.windows, p.consents, p.approvals, p.choices, p.labels,
	(select b.body from gateway.bodies b where p.annotations <> '' and b.tenant = p.tenant and b.commitment = p.annotations), now()
	from gateway.installplans p`

// planRow is a plan with what its answer does not show.
type planRow struct {
	model.InstallPlan
	stepLog string
	choices []planChoice
	at      events.Position
}

func scanPlan(row pgx.Row) (planRow, error) {
	var p planRow
	var base events.PlanBase
	var bundles []events.PlannedBundle
	var block model.PlanBlock
	var failure model.PlanFailure
	var approvedBy string
	var approved, expires *time.Time
	var t planTerms
	var noted []byte
	err := row.Scan(&p.ID, &p.Cluster, &p.Namespace, &p.Name, &p.Generation, &p.Component, &p.Approval, &p.Phase, &p.Begun, &p.Digest,
		&p.Steps, &base, &bundles, &block.Class, &block.Reason, &failure.Step, &failure.Reason, &p.SupersededBy, &approvedBy, &approved,
		&expires, &p.ProposedAt, &p.StartedAt, &p.EndedAt, &p.UpdatedAt, &p.Stream, &p.Version, &p.stepLog, &p.at.Epoch, &p.at.N,
		&t.policies, &t.reasons, &t.approvers, &t.seconds, &t.windows, &t.consents, &t.approvals, &p.choices, &p.Labels, &noted, &t.now)
	if err == nil && noted != nil { // those that were erased are none
		err = errs.Wrap(errs.Internal, json.Unmarshal(noted, &p.Annotations), "read annotations")
	}
	p.Base, p.Bundles = model.PlanBase(base), model.Bundles(bundles)
	if block.Reason != "" && p.EndedAt == nil { // what has ended waits for nothing
		p.Blocked = &block
	}
	if failure.Reason != "" || failure.Step > 0 {
		p.Failure = &failure
	}
	if approved != nil && expires != nil {
		p.Approved = &model.PlanApproval{By: approvedBy, At: *approved, Expires: *expires}
	}
	p.PlanTerms = t.of(p.InstallPlan)
	for _, c := range p.choices {
		p.Choices = append(p.Choices, model.PlanChoice{Object: c.Object, Choice: c.Choice, Finding: c.Finding, By: c.By, At: c.At})
	}
	return p, err
}

// sayReasons adds the words of approvers to what they chose, where they were not erased.
func sayReasons(ctx context.Context, q pg.Querier, tenant string, p *planRow) error {
	for i, c := range p.choices {
		if c.Reason == "" {
			continue
		}
		var body []byte
		err := pg.Err(q.QueryRow(ctx, `select body from gateway.bodies where tenant = $1 and commitment = $2`, tenant, c.Reason).Scan(&body))
		if err != nil && !errs.Is(err, errs.NotFound) {
			return err
		}
		p.Choices[i].Reason = string(body)
	}
	return nil
}

// planTerms are what policies make of a plan, as its row has it.
type planTerms struct {
	policies, reasons   []string
	approvers           int
	seconds             int64
	windows             []events.WindowGroup
	consents, approvals []model.PlanApproval
	now                 time.Time
}

// of folds the terms with the rest of the plan's row, in the words of its aggregate.
func (t planTerms) of(p model.InstallPlan) model.PlanTerms {
	s := installplan.State{
		Phase: installplan.Phase(p.Phase), Begun: p.Begun, Proposed: events.InstallPlanProposed{
			Approval: p.Approval, Policies: t.policies, ManualReasons: t.reasons, Approvers: t.approvers, ApprovalSeconds: t.seconds, Windows: t.windows,
		},
	}
	if p.Approved != nil {
		s.Approval = installplan.Approval{Digest: p.Digest, Expires: p.Approved.Expires}
	}
	for _, c := range t.consents {
		s.Consents = append(s.Consents, installplan.Consent{By: c.By, Expires: c.Expires})
	}
	return model.Terms(s, t.consents, t.approvals, t.now)
}

func sayPlans(ctx context.Context, q pg.Querier, tenant string, items []planRow) error {
	return say(ctx, q, tenant, messagePlan, items, func(p *planRow) (string, *string) {
		return p.Cluster + "/" + p.Namespace + "/" + p.Name, &p.Message
	})
}

// InstallPlans lists install plans, newest first.
func (r *Reader) InstallPlans(ctx context.Context, who model.Caller, f model.PlanFilter) (items []model.InstallPlan, next []string, err error) {
	var w where
	w.add("p.tenant = ?", who.Tenant)
	w.equal("p.cluster", f.Cluster)
	w.equal("p.namespace", f.Namespace)
	w.phase(f.Phase)
	if f.Blocked != "" {
		w.add("(p.blocked_reason <> '' and p.ended is null) = ?", f.Blocked == "true")
	}
	if err := w.label("p.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := w.before(f.After); err != nil {
		return nil, nil, err
	}
	var rows []planRow
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		var more bool
		rows, more, err = page(ctx, tx, planColumns+w.String()+" order by p.epoch desc, p.position desc", w.args, f.Limit, scanPlan)
		if more {
			last := rows[len(rows)-1].at
			next = []string{strconv.FormatInt(last.Epoch, 10), strconv.FormatInt(last.N, 10)}
		}
		if err != nil {
			return err
		}
		return sayPlans(ctx, tx, who.Tenant, rows)
	})
	items = make([]model.InstallPlan, len(rows))
	for i, p := range rows {
		items[i] = p.InstallPlan
	}
	return items, next, err
}

// phase adds the phase that is shown, and what it implies in the words of an index.
func (w *where) phase(phase string) {
	if phase == "" {
		return
	}
	w.equal(shownPhase, phase)
	if phase == string(installplan.RequiresApproval) {
		w.add("p.phase in ('RequiresApproval', 'Installing')")
		return
	}
	w.equal("p.phase", phase)
}

// before continues behind the last plan of the page before, in descending order.
func (w *where) before(after []string) error {
	if len(after) == 0 {
		return nil
	}
	at, err := events.ParsePosition(strings.Join(after, "-"))
	if err != nil || len(after) != 2 {
		return errs.New(errs.Invalid, "the cursor does not belong to this list").At("query.cursor", "cursor")
	}
	w.add("(p.epoch, p.position) < (?, ?)", at.Epoch, at.N)
	return nil
}

// InstallPlan returns one plan with its document and its step log.
func (r *Reader) InstallPlan(ctx context.Context, who model.Caller, id string) (model.InstallPlan, error) {
	var items [1]planRow
	p := &items[0]
	err := r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) (err error) {
		*p, err = one(ctx, tx, planColumns+` where p.tenant = $1 and p.id = $2`, []any{who.Tenant, id},
			errs.New(errs.NotFound, "there is no install plan %s", id), scanPlan)
		if err != nil {
			return err
		}
		p.Document, err = document(ctx, tx, `select document from resolver_api.plan_documents where tenant = $1 and plan = $2`, who.Tenant, p.ID)
		if err != nil {
			return err
		}
		c, err := observed(ctx, tx, who.Tenant, p.Cluster)
		if err != nil {
			return err
		}
		p.RemovedAPIs = cluster.RemovedByPlan(c.KubernetesVersion, p.Document)
		p.StepLog, err = document(ctx, tx, `select document::text from installer_api.step_logs where tenant = $1 and digest = $2`, who.Tenant, p.stepLog)
		if err != nil {
			return err
		}
		if err := r.Content.planned(ctx, tx, who.Tenant, &p.InstallPlan); err != nil {
			return err
		}
		if err := sayReasons(ctx, tx, who.Tenant, p); err != nil {
			return err
		}
		return sayPlans(ctx, tx, who.Tenant, items[:])
	})
	return p.InstallPlan, err
}
