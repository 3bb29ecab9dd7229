package api

import (
	"context"
	"fmt"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// extent is where the scope of an operation comes from.
type extent string

const (
	placeFleet   extent = "fleet"   // the fleet as a whole
	placeRequest extent = "request" // path, query or body say where
	placeSeen    extent = "seen"    // anywhere: the answer holds only what the caller may see
	placeOffered extent = "offered" // a catalog, as far as it is offered where the caller may see
	placeObject  extent = "object"  // the object says where; what carries out the operation decides
	placeNone    extent = "none"    // everybody who is known
)

// need is what a caller must be allowed to for an operation. Its zero value is denied to everybody.
type need struct {
	verb  access.Verb
	on    access.Resource
	place extent
}

// everybody is for what is the same for all who are known.
var everybody = need{place: placeNone}

func fleetWide(v access.Verb, on access.Resource) need     { return need{v, on, placeFleet} }
func whereAsked(v access.Verb, on access.Resource) need    { return need{v, on, placeRequest} }
func whatIsSeen(v access.Verb, on access.Resource) need    { return need{v, on, placeSeen} }
func whatIsOffered(v access.Verb, on access.Resource) need { return need{v, on, placeOffered} }
func ofObject(v access.Verb, on access.Resource) need      { return need{v, on, placeObject} }

// located is input that says where.
type located interface{ target() access.Target }

// chooses is input that says what, where one route does several things.
type chooses interface{ verb() access.Verb }

// ofCatalog is input that names a catalog.
type ofCatalog interface{ name() catalog.Name }

// check panics where input does not say what the need wants to know: that is a fault of the code, which the first start
// shows.
func (n need) check(op huma.Operation, in any) {
	ok := n.place == placeNone || access.Known(n.verb, n.on)
	if n.place == placeRequest {
		_, says := in.(located)
		ok = ok && says
	}
	if n.place == placeOffered {
		_, says := in.(ofCatalog)
		ok = ok && says
	}
	if !ok {
		panic(fmt.Sprintf("operation %s cannot tell what a caller must be allowed to", op.OperationID))
	}
}

// document says in the OpenAPI document what an operation needs.
func (n need) document(op *huma.Operation) {
	if op.Extensions == nil {
		op.Extensions = map[string]any{}
	}
	says := map[string]any{"scope": string(n.place)}
	if n.place != placeNone {
		says["verb"], says["resource"] = string(n.verb), string(n.on)
	}
	op.Extensions["x-chandler-access"] = says
}

// classExtension names the class of an operation in the OpenAPI document.
const classExtension = "x-chandler-rate-class"

// classed is an operation whose class is not that of its verb.
func classed(op huma.Operation, c limit.Class) huma.Operation {
	op.Extensions = map[string]any{classExtension: c}
	return op
}

// classify says by which limit an operation is counted. It panics where neither its verb nor the operation says so:
// that is a fault of the code, which the first start shows.
func (n need) classify(op *huma.Operation) {
	if _, says := op.Extensions[classExtension]; says {
		return
	}
	class := limit.ClassOf(op.Method, n.verb)
	if class == "" {
		panic(fmt.Sprintf("operation %s has no class of requests", op.OperationID))
	}
	op.Extensions[classExtension] = class
}

// authorize lets a caller through who may do what an operation needs. It is the one place where the API decides;
// what it decides by is access.Rights.
func (a *API) authorize(ctx context.Context, who model.Caller, n need, in any) error {
	v, at := n.verb, access.Target{}
	if c, ok := in.(chooses); ok {
		v = c.verb()
	}
	switch n.place {
	case placeNone:
		return nil
	case placeFleet:
	case placeRequest:
		at = in.(located).target() //nolint:forcetypeassert // register has checked it
	case placeSeen, placeObject:
		at.Anywhere = true
	case placeOffered:
		if !who.May(v, n.on, access.Target{Anywhere: true}) {
			return denied(who, v, n.on, access.Target{Anywhere: true})
		}
		name := in.(ofCatalog).name() //nolint:forcetypeassert // register has checked it
		seen, err := a.reads.Catalogs.Offered(ctx, who, v, n.on, name)
		if err == nil && !seen {
			err = catalogs.NotKnown(name)
		}
		return err
	default:
		return errs.New(errs.Forbidden, "nobody may do this")
	}
	if who.May(v, n.on, at) {
		return nil
	}
	return denied(who, v, n.on, at)
}

// ofSomethingThere are verbs about an object that exists: who may not see it is not told that it does.
var ofSomethingThere = []access.Verb{
	access.Get, access.Update, access.Delete, access.Override, access.Rollback, access.Refresh,
}

// denied is the refusal of what a caller may not do: that nothing is there, where they may not see it either. It is
// decided before anything is looked for, so that the answer is the same whether it exists or not.
func denied(who model.Caller, v access.Verb, on access.Resource, at access.Target) error {
	placed, of := at.Cluster != "" || at.Catalog != "", on
	if on == access.Logs { // of an operator, which one may see without them
		of = access.Operators
	}
	if placed && slices.Contains(ofSomethingThere, v) && access.Known(access.Get, of) && !who.May(access.Get, of, at) {
		return errs.New(errs.NotFound, "there is no such thing among the %s of %s that you may see", on, at)
	}
	return access.Denied(v, on, at)
}

func (p ClusterPath) target() access.Target { return access.Target{Cluster: p.Cluster} }

func (p NamespacePath) target() access.Target {
	return access.Target{Cluster: p.Cluster, Namespace: p.Namespace}
}

func (p CatalogPath) target() access.Target {
	return access.CatalogTarget(p.Cluster, p.Namespace, p.Catalog)
}

func (q HealthQuery) target() access.Target {
	return access.Target{Cluster: q.Cluster, Namespace: q.Namespace}
}

func (in registerClusterInput) target() access.Target { return access.Target{Cluster: in.Body.Name} }

func (in addCatalogInput) target() access.Target {
	return access.CatalogTarget(in.Body.Cluster, in.Body.Namespace, in.Body.Name)
}

func (in createSubscriptionInput) target() access.Target {
	return subscriptionTarget(in.NamespacePath, in.Body.SubscriptionSpec)
}

func (in changeSubscriptionInput) target() access.Target {
	return subscriptionTarget(in.NamespacePath, in.Body.SubscriptionSpec)
}

func subscriptionTarget(p NamespacePath, s model.SubscriptionSpec) access.Target {
	at := p.target()
	at.Catalog = access.CatalogName(s.CatalogNamespace, s.Catalog)
	return at
}

// That the whole fleet is stopped concerns everybody who may see how any part of it does.
func (in getEffectsInput) target() access.Target {
	return access.Target{Cluster: in.Cluster, Anywhere: in.Cluster == ""}
}

func (in setEffectsInput) target() access.Target { return access.Target{Cluster: in.Body.Cluster} }

func (in setEffectsInput) verb() access.Verb {
	if in.Body.Action == "resume" {
		return access.Resume
	}
	return access.Stop
}

func (in createPreviewInput) target() access.Target {
	return access.Target{Cluster: in.Body.Cluster, Namespace: in.Body.Namespace}
}

func (in shadowInput) target() access.Target {
	return access.Target{Cluster: in.Body.Cluster, Namespace: in.Body.Namespace}
}
