package objects

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/plans"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/cmd/chandler/olm"
	"github.com/chandler-fleet/chandler/cmd/chandler/preview"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// tryApply says what apply would do. The server makes the checks of each write: of those that lead to plans by a
// preview of all of them together, of the others by writes that it takes back (ADR 0053).
func tryApply(
	ctx context.Context, a *command.Env, c *client.Client, o applyOptions, tasks []task, all []olm.Document,
) error {
	gone, err := o.prune.find(ctx, c, o.Options, all)
	if err != nil {
		return err
	}
	results, err := runTasks(ctx, a, c, tasks, "checking", tried(c.DryRun(), rolesOf(tasks)))
	var later, now []model.PreviewChange
	for i, t := range tasks {
		if results[i].err != nil || results[i].did == unchanged || !previewable(t.doc) {
			continue
		}
		changes, err := preview.Changes([]olm.Document{t.doc}, []string{t.ref.Cluster})
		switch {
		case err != nil:
			return err
		case namesNew(t, tasks, results):
			later = append(later, changes...)
		default:
			now = append(now, changes...)
		}
	}
	wrong := []error{err}
	if len(later) > 0 {
		wrong = append(wrong, checkLater(ctx, a, c, later))
	}
	removals, err := o.prune.preview(a, gone)
	wrong = append(wrong, err)
	if now = append(now, removals...); len(now) > 0 {
		wrong = append(wrong, plans.KeepNamespaces(ctx, c, now), plans.ShowChanges(ctx, a, c, now))
	}
	wrong = append(wrong, o.prune.bound(gone))
	return errors.Join(wrong...)
}

// previewable says whether a document leads to plans.
func previewable(d olm.Document) bool {
	return d.Subscription != nil || d.OperatorGroup != nil || d.Policy != nil
}

// tried carries a task out with a client whose writes are taken back. What is previewed is checked there; a binding to
// a role that the same call makes can be checked when the role is there.
func tried(dry *client.Client, roles []string) carrier {
	return func(ctx context.Context, c *client.Client, t task) (out result) {
		if previewable(t.doc) || t.doc.NamespaceLabels != nil ||
			t.doc.RoleBinding != nil && slices.Contains(roles, t.doc.RoleBinding.Role) {
			var found comparison
			found, out.err = t.diff(ctx, c)
			out.did, out.warnings = found.did, found.warnings
		} else {
			out = carryOut(ctx, c, dry, t)
		}
		out.text = t.name + " " + out.did + command.DryRunServer.Note()
		return out
	}
}

func rolesOf(tasks []task) (names []string) {
	for _, t := range tasks {
		if t.doc.Role != nil {
			names = append(names, t.doc.Name)
		}
	}
	return names
}

// namesNew says whether a subscription names a catalog that the same call would add.
func namesNew(t task, tasks []task, results []result) bool {
	s := t.doc.Subscription
	if s == nil {
		return false
	}
	for i, o := range tasks {
		if o.doc.Catalog != nil && results[i].did == created && o.ref.Name == s.Catalog &&
			(o.ref.Cluster == "" || o.ref.Cluster == t.ref.Cluster) {
			return true
		}
	}
	return false
}

// checkLater checks subscriptions to catalogs that are not there yet: what they lead to cannot be known.
func checkLater(ctx context.Context, a *command.Env, c *client.Client, changes []model.PreviewChange) error {
	for _, part := range plans.Parts(changes) {
		if _, err := c.NewPreview(ctx, model.PreviewRequest{Changes: part}, model.ValidateDefault); err != nil {
			return err
		}
	}
	for _, s := range changes {
		s := s.Subscription
		if _, err := fmt.Fprintf(a.Err, "note: subscription/%s/%s/%s: what it leads to is known once catalog %s was read\n",
			s.Cluster, s.Namespace, s.Name, s.Spec.Catalog); err != nil {
			return err
		}
	}
	return nil
}

// applied is what apply --wait waits for: of a subscription that was changed, that nothing more comes of the change.
func applied(tasks []task, results []result) (objects []object) {
	for i, t := range tasks {
		o := object{kind: t.kind, ref: t.ref, changed: results[i].did == configured}
		switch {
		case t.doc.Subscription != nil:
			o.goal = goal{what: goalLatest}
			o.spec = &model.ChangeSubscription{Metadata: t.doc.Metadata, SubscriptionSpec: *t.doc.Subscription}
		case t.doc.Catalog != nil && !t.doc.Catalog.Disabled:
			o.goal = goal{what: goalState, want: model.CatalogReady}
		case t.doc.Plan != nil && t.doc.Plan.Approved:
			o.goal = goal{what: goalPhase, want: kinds.PhaseComplete}
		default:
			continue
		}
		if !slices.ContainsFunc(objects, func(x object) bool { return x.kind == o.kind && x.ref == o.ref }) {
			objects = append(objects, o)
		}
	}
	return objects
}
