// Package group carries out what an operator group comes to: the namespaces that its operators serve, which operator
// provides which API, and the roles of operators and users that follow from both (R-OG).
//
// The decisions are in decide_*.go: which namespaces a group serves, which roles users get for its APIs, which roles of
// its operators go to its targets, and what is reported of it.
//
// It has three stages: Reader goes first, since overlays and plans depend on the targets; Stage writes what operators
// need, before their phases; Users writes what people get, after these.
package group

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Hub is what the hub wants of all namespaces.
type Hub interface {
	Get(namespace string) (p protocol.ScopePlans, behind, known bool)
	All() []protocol.ScopePlans
	MayHaveGroup(id string) bool
}

// Facts remembers what was read of the cluster.
type Facts interface {
	ForgetNamespace(namespace string)
}

// Stage looks after operator groups.
type Stage struct {
	Groups *Groups
	Hub    Hub
	Facts  Facts
	// Wake has namespaces reconciled.
	Wake func(namespaces []string)
	// RolesWait is how long roles of users wait at most for operators that are on their way.
	RolesWait time.Duration
	// Halt ends what runs of an operator whose APIs are another group's.
	Halt func(ctx context.Context, sc *scope.Scope, m *scope.Operator) error
}

type worker struct {
	*Stage
	*scope.Scope
}

// Reader is the stage that finds what the operator group of the namespace comes to now (R-OG §7.1).
type Reader struct{ *Stage }

// Reconcile reads the group, with its targets.
func (r Reader) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{r.Stage, sc}.read(ctx)
}

// Reconcile keeps what the operators need in the namespaces that they serve, and takes from those that may not
// provide their APIs what runs (R-OG-35, R-OG-44, R-OG-45).
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{s, sc}.arrange(ctx)
}

// Users is the stage that keeps what users get from the group: its aggregating roles, the roles of the APIs that its
// operators provide once they run (R-OG-40 … R-OG-43), and the labels of the namespaces that it serves.
type Users struct{ *Stage }

// Reconcile keeps the roles of users, once nobody waits for a phase.
func (u Users) Reconcile(ctx context.Context, sc *scope.Scope) (scope.Result, error) {
	return scope.Result{}, worker{u.Stage, sc}.roles(ctx)
}

// Claim claims the APIs of a plan's operators before the first step, so that what is written says so from the start.
// One that is refused is installed as far as it goes, and its phase says why (R-OG-36).
func (s *Stage) Claim(sc *scope.Scope, p scope.Plan) { worker{s, sc}.claim(p) }

// Busy notes that a plan is under way: roles of APIs wait for it.
func (s *Stage) Busy(sc *scope.Scope) { s.Groups.Rest.Busy(sc.Namespace, sc.Env.Now()) }

// Overlay tells an operator and its pods which namespaces it serves (R-OG §7.3, R-OG-15), and keeps with the
// operator which APIs it has claimed for its group (R-OG-20).
func (s *Stage) Overlay(sc *scope.Scope) overlay.Overlay { return worker{s, sc}.overlay() }

// Report is what is reported of the group, nil where there is not exactly one.
func (s *Stage) Report(sc *scope.Scope) *protocol.GroupReport {
	g := sc.Found.Group
	if !g.One {
		return nil
	}
	out := &protocol.GroupReport{
		ID: g.ID, Name: g.Name, Targets: g.Targets,
		ProvidedAPIs: s.Groups.Claims.Provided(sc.Namespace), Conditions: g.Conditions,
	}
	if texts := sc.Env.Pace.Notes(sc.Namespace, sc.Env.Now()); len(texts) > 0 {
		out.Conditions = append(slices.Clone(g.Conditions), UpkeepFailed(texts))
	}
	out.Roles = RoleNames(g.Group)
	return out
}

// noting is the cluster with a note of everything that is left in it: that wakes nobody but the operators that may have
// waited for it.
func (w worker) noting() Cluster {
	return Noting{Cluster: w.Env.Client, Left: func(o *unstructured.Unstructured) {
		w.Left(o)
		w.Facts.ForgetNamespace(o.GetLabels()[render.LabelOwnerNamespace])
	}}
}
