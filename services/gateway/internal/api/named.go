package api

import (
	"context"
	"net/http"

	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/namelookup"
)

// namedPage is how much of a namespace is read at once.
const namedPage = 500

// nameHandlers find what people mean by a name: a package, a subscription or a ClusterServiceVersion.
type nameHandlers struct{ Deps }

func (h nameHandlers) register(a *API) {
	register(a, whereAsked(access.Get, access.Subscriptions),
		operation(http.MethodGet, "/clusters/{cluster}/namespaces/{namespace}/named/{name}",
			"find-named", tagSubscriptions,
			"Find the subscription or the operator that a name means: its own, its package's, its subscription's or its "+
				"CSV's; one that may be several is a conflict that lists them"), h.findNamed)
}

// readNamespace reads the names of a namespace.
func (h nameHandlers) readNamespace(
	ctx context.Context, who model.Caller, at NamespacePath,
) (namelookup.Namespace, error) {
	w := namelookup.Namespace{Cluster: at.Cluster, Namespace: at.Namespace}
	for page := (model.Page{Limit: namedPage}); ; {
		list, next, err := h.Reads.Subscriptions.List(ctx, who,
			model.SubscriptionFilter{Cluster: at.Cluster, Namespace: at.Namespace, Page: page})
		if err != nil {
			return w, err
		}
		for _, s := range list {
			w.Subscriptions = append(w.Subscriptions, namelookup.Subscription{
				Name: s.Name, Package: s.Spec.Package, Installed: s.Status.InstalledCSV, Current: s.Status.CurrentCSV,
			})
		}
		if page.After = next; len(next) == 0 {
			break
		}
	}
	for page := (model.Page{Limit: namedPage}); ; {
		list, next, err := h.Reads.Operators.List(ctx, who,
			model.OperatorFilter{Cluster: at.Cluster, Namespace: at.Namespace, Page: page})
		if err != nil {
			return w, err
		}
		for _, o := range list {
			w.Operators = append(w.Operators, namelookup.Operator{Name: o.Name, Package: o.Package})
		}
		if page.After = next; len(next) == 0 {
			return w, nil
		}
	}
}

type findNamedInput struct {
	ObjectPath
	ReadQuery
	Kind string `query:"kind" required:"true" enum:"subscription,operator" doc:"Kind of the object"`
}

func (h nameHandlers) findNamed(
	ctx context.Context, who model.Caller, in *findNamedInput,
) (*output[model.Named], error) {
	for _, view := range []string{subscriptions.Name, operators.Name} {
		if err := h.wait(ctx, who, view, in.ReadQuery); err != nil {
			return nil, err
		}
	}
	w, err := h.readNamespace(ctx, who, in.NamespacePath)
	if err != nil {
		return nil, err
	}
	found, err := w.Find(namelookup.Kind(in.Kind), in.Name)
	return read(model.Named{Kind: in.Kind, Name: found, Package: w.Package(namelookup.Kind(in.Kind), found)}, err)
}
