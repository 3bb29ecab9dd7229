// Package installplans is the read model of install plans. A row holds the state of the aggregate, as
// installplan.Evolve folds it, and beside it the columns that lists choose by.
package installplans

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/projection"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/content"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/readmodel"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Name is the name of the projection.
const Name = "gateway.installplans"

// Projection folds every event of install plans.
func Projection() projection.Projection {
	return readmodel.Projection(Name, 6, []string{"installplans"}, readmodel.OnAll(events.KindInstallPlan, apply)...)
}

func apply(ctx context.Context, f readmodel.Fold) error {
	var s model.PlanState
	_, proposed := f.Payload.(events.InstallPlanProposed)
	if !proposed {
		err := f.Tx.QueryRow(ctx, `select state from `+f.Table("installplans")+` where tenant = $1 and stream = $2`,
			f.Tenant, f.Stream).Scan(&s)
		if errors.Is(err, pgx.ErrNoRows) {
			return errs.New(errs.Internal, "install plan %s was not proposed before %s", f.Stream, f.Type)
		}
		if err != nil {
			return err
		}
	}
	s, err := s.Evolve(f.Payload, f.Actor, f.Time)
	if err != nil {
		return err
	}
	p := s.Plan
	var expires *time.Time
	if !p.Approval.Expires.IsZero() {
		expires = &p.Approval.Expires
	}
	changing := []any{
		f.Tenant, f.Stream, s, string(p.Phase), p.Begun, p.Blocked.Reason, expires, s.EndedAt, f.Time, f.Version,
		readmodel.Labels(p.Metadata), p.Metadata.Annotations,
	}
	if !proposed {
		return f.Exec(ctx, `update `+f.Table("installplans")+` set state = $3, phase = $4, begun = $5,
			blocked_reason = $6, approval_expires = $7,
			ended = $8, updated = $9, version = $10, labels = $11, annotations = $12 where tenant = $1 and stream = $2`, changing...)
	}
	return f.Exec(ctx, `insert into `+f.Table("installplans")+` (tenant, stream, state, phase, begun, blocked_reason,
		approval_expires, ended, updated, version,
			labels, annotations, id, cluster, namespace, name, approval, bundles, epoch, position)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
		append(changing, p.Proposed.Plan, p.Proposed.Cluster, p.Proposed.Namespace, p.Proposed.Name,
			p.Proposed.Approval, p.Proposed.Bundles,
			f.Position.Epoch, f.Position.N)...)
}

const columns = `select p.name, p.cluster, p.namespace, ` + shownPhase + ` as phase, p.updated,
	p.state, p.stream, p.version, p.epoch, p.position, now() as now, p.annotations
	from installplans p`

type row struct {
	Name        string
	Cluster     string
	Namespace   string
	Phase       string // as it is shown
	Updated     time.Time
	State       model.PlanState
	Stream      string
	Version     int64
	Epoch       int64
	Position    int64
	Now         time.Time
	Annotations string // commitment
}

// Reader answers queries about install plans.
type Reader struct {
	Pool    *pg.Pool
	Content *content.Reader
	Bodies  *readmodel.Bodies // for annotations, reasons and configurations
	Log     *eventlog.Log
}

// answers have the annotations in lists, too: who applies a list of plans again must not take them away, and the whole
// of each plan is large.
func (r *Reader) answers(ctx context.Context, q pg.Querier, tenant string, rows ...row) ([]model.InstallPlan, error) {
	commitments := make([]string, len(rows))
	for i, x := range rows {
		commitments[i] = x.Annotations
	}
	noted, err := r.Bodies.Read(ctx, q, tenant, commitments...)
	if err != nil {
		return nil, err
	}
	items := make([]model.InstallPlan, len(rows))
	for i, x := range rows {
		p := &items[i]
		*p = x.State.InstallPlanAt(x.Now)
		p.Stream, p.Version = x.Stream, x.Version
		if err := noted.Annotations(x.Annotations, &p.Metadata, &p.Unreadable); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// shownPhase is installplan.State.PhaseAt in SQL: an approval that expired before the first step is void.
const shownPhase = `case when p.phase = 'Installing' and p.approval = 'Manual' and not p.begun
	and p.approval_expires <= now()
	then 'RequiresApproval' else p.phase end`

// places are the columns by which a plan lies in a scope.
var places = readmodel.Places{Cluster: "p.cluster", Namespace: "p.namespace"}

// List returns install plans, newest first.
func (r *Reader) List(
	ctx context.Context, who model.Caller, f model.PlanFilter,
) (items []model.InstallPlan, next []string, err error) {
	w := readmodel.Tenant("p.tenant", who.Tenant)
	w.Within(who, access.List, access.InstallPlans, places)
	w.Equal("p.cluster", f.Cluster)
	w.Equal("p.namespace", f.Namespace)
	addPhase(&w, f.Phase)
	if f.Blocked != "" {
		w.Add("(p.blocked_reason <> '' and p.ended is null) = ?", f.Blocked == "true")
	}
	if err := w.Label("p.labels", f.Label); err != nil {
		return nil, nil, err
	}
	if err := listing.Narrow(&w, who, f.Choice, f.After); err != nil {
		return nil, nil, err
	}
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		rows, more, err := readmodel.Page[row](ctx, tx, columns, w, listing.OrderBy(f.Sort), f.Limit)
		if err != nil {
			return err
		}
		if items, err = r.answers(ctx, tx, who.Tenant, rows...); err != nil {
			return err
		}
		if more {
			next = listing.Next(f.Sort, rows[len(rows)-1])
		}
		return addMessages(ctx, tx, who.Tenant, items)
	})
	return items, next, err
}

// addPhase adds the phase that is shown, and what it implies in the columns of an index.
func addPhase(w *readmodel.Where, phase string) {
	if phase == "" {
		return
	}
	w.Equal(shownPhase, phase)
	if phase == string(installplan.RequiresApproval) {
		w.Add("p.phase in ('RequiresApproval', 'Installing')")
		return
	}
	w.Equal("p.phase", phase)
}

func addMessages(ctx context.Context, q pg.Querier, tenant string, items []model.InstallPlan) error {
	return readmodel.AddMessages(ctx, q, tenant, readmodel.MessagePlan, items,
		func(p *model.InstallPlan) (string, *string) {
			return p.Cluster + "/" + p.Namespace + "/" + p.Name, &p.Message
		})
}

// Get returns one plan with its document and its step log.
func (r *Reader) Get(ctx context.Context, who model.Caller, id string) (p model.InstallPlan, err error) {
	w := readmodel.Tenant("p.tenant", who.Tenant)
	w.Add("p.id = ?", id)
	w.Within(who, access.Get, access.InstallPlans, places)
	err = r.Pool.TenantTx(ctx, who.Tenant, func(tx pgx.Tx) error {
		x, err := readmodel.One[row](ctx, tx, columns, w, errs.New(errs.NotFound, "there is no install plan %s", id))
		if err != nil {
			return err
		}
		items, err := r.answers(ctx, tx, who.Tenant, x)
		if err != nil {
			return err
		}
		p = items[0]
		if err := r.addDocuments(ctx, tx, who.Tenant, x.State, &p); err != nil {
			return err
		}
		items[0] = p
		err = addMessages(ctx, tx, who.Tenant, items)
		p = items[0]
		return err
	})
	return p, err
}

// addDocuments adds what stands outside the log.
func (r *Reader) addDocuments(
	ctx context.Context, tx pgx.Tx, tenant string, s model.PlanState, p *model.InstallPlan,
) (err error) {
	p.Document, err = readmodel.Document(ctx, tx, `select document from resolver_api.plan_documents
		where tenant = $1 and plan = $2`, tenant, p.ID)
	if err != nil {
		return err
	}
	c, err := clusters.Observed(ctx, tx, tenant, p.Cluster)
	if err != nil {
		return err
	}
	p.RemovedAPIs = cluster.RemovedByPlan(c.KubernetesVersion, p.Document)
	p.StepLog, err = readmodel.Document(ctx, tx, `select document::text from installer_api.step_logs
		where tenant = $1 and digest = $2`, tenant, s.Plan.StepLog)
	if err != nil {
		return err
	}
	if err := r.addChanges(ctx, tx, tenant, p); err != nil {
		return err
	}
	return r.addReasons(ctx, tx, tenant, s, p)
}

// erasedReason takes the place of words that were erased.
const erasedReason = "(erased)"

// unreadableReason takes the place of words that do not open; the plan is marked.
const unreadableReason = "(cannot be opened)"

// addReasons adds the words of approvers to what they chose, or that they were erased.
func (r *Reader) addReasons(
	ctx context.Context, q pg.Querier, tenant string, s model.PlanState, p *model.InstallPlan,
) error {
	for i, c := range s.Choices {
		if c.Reason == "" {
			continue
		}
		opened, err := r.Bodies.Read(ctx, q, tenant, c.Reason)
		if err != nil {
			return err
		}
		marks := len(p.Unreadable)
		body := opened.Text(c.Reason, model.PartReason, &p.Unreadable)
		switch {
		case body != nil:
			p.Choices[i].Reason = string(body)
		case len(p.Unreadable) > marks:
			p.Choices[i].Reason = unreadableReason
		default:
			p.Choices[i].Reason = erasedReason
		}
	}
	return nil
}

// addChanges adds what a plan's replacements change, for approvers. What is replaced is what is installed, or was when
// the plan is over.
func (r *Reader) addChanges(ctx context.Context, q pg.Querier, tenant string, p *model.InstallPlan) error {
	for _, b := range p.Bundles {
		if b.Replaces == "" {
			continue
		}
		u := model.Upgrade{From: b.Replaces, To: b.CSV, ToContent: b.Content}
		var err error
		if u.FromContent, _, err = installed(ctx, q, tenant, p.Cluster, p.Namespace, b.Replaces); err != nil {
			return err
		}
		if err := r.Content.Compare(ctx, q, tenant, &u); err != nil {
			return err
		}
		p.Changes = append(p.Changes, u)
	}
	return nil
}
