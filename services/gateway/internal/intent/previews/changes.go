package previews

import (
	"cmp"
	"context"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// change is one change of a preview, ready to be tried.
type change struct {
	about string // for the audit
	// reach is what it can touch at most; empty fields are all.
	reach previewapi.Scope
	// intent carries it out; nil for what no intent can do.
	intent func(ctx context.Context, u *unit.Work) error
	// may says what the caller must be allowed to for what no intent can do.
	may func(who model.Caller) error
	// hypothesis is the event of what no intent can do, and why says so.
	hypothesis func() (previewapi.Hypothesis, error)
	why        string
}

// beyond says why a change cannot be carried out after a preview of the cluster and namespace alone to which a question
// is narrowed: it reaches others, and nobody has seen what becomes of them. It is "" where it does not.
func (c change) beyond(in model.PreviewRequest) string {
	if (in.Cluster == "" || in.Cluster == c.reach.Cluster) &&
		(in.Namespace == "" || in.Namespace == c.reach.Namespace) {
		return ""
	}
	return "it is narrowed to " + cmp.Or(in.Cluster, "*") + "/" + cmp.Or(in.Namespace,
		"*") + ", and the change reaches further (" + c.about + "): preview it without narrowing"
}

// change reads one change of a preview; at is its place in the request.
func (s *Service) change(c model.PreviewChange, how model.Validate, at string) (change, error) {
	given := 0
	for _, there := range []bool{
		c.Subscription != nil, c.OperatorGroup != nil, c.Catalog != nil,
		c.ApprovalPolicy != nil, c.Operator != nil,
	} {
		if there {
			given++
		}
	}
	if given != 1 {
		return change{}, errs.New(errs.Invalid, "a change of a preview names exactly one object: %d are given",
			given).At(at,
			rule.OneOf)
	}
	switch {
	case c.Subscription != nil:
		return s.subscriptionChange(*c.Subscription, how, at+"/subscription")
	case c.OperatorGroup != nil:
		return s.groupChange(*c.OperatorGroup, at+"/operatorGroup")
	case c.Catalog != nil:
		x, err := s.catalogChange(*c.Catalog, how, at+"/catalog")
		x.reach.Cluster = c.Catalog.Cluster // a cluster's own catalog is offered there alone
		return x, err
	case c.ApprovalPolicy != nil:
		return s.policyChange(*c.ApprovalPolicy, at+"/approvalPolicy")
	default:
		return operatorChange(*c.Operator), nil
	}
}

// actionOn says what apply means for an object: create or replace.
func actionOn(ctx context.Context, u *unit.Work, kind events.Kind, key, action string) (string, error) {
	if action != model.PreviewApply {
		return action, nil
	}
	found, err := u.Exists(ctx, kind, key)
	if err != nil {
		return "", err
	}
	if found {
		return model.PreviewReplace, nil
	}
	return model.PreviewCreate, nil
}

// verbOf is what an action needs.
var verbOf = map[string]access.Verb{
	model.PreviewCreate: access.Create, model.PreviewReplace: access.Update, model.PreviewDelete: access.Delete,
}

// allowed wants for a change in a preview what the change itself wants, so that nobody tries out, or has others carry
// out, what they may not do.
func allowed(who model.Caller, v access.Verb, on access.Resource, at access.Target) error {
	if who.May(v, on, at) {
		return nil
	}
	return access.Denied(v, on, at)
}

// becomes is what an action does to an object, for messages.
var becomes = map[string]string{
	model.PreviewApply: "created or replaced", model.PreviewCreate: "created", model.PreviewReplace: "replaced",
}

func needsSpec(action string, has bool, what, at string) error {
	if action != model.PreviewDelete && !has {
		return errs.New(errs.Invalid, "%s is to be %s, and no spec is given", what, becomes[action]).At(at+"/spec",
			rule.Required)
	}
	return nil
}

func (s *Service) subscriptionChange(c model.PreviewSubscription, how model.Validate, at string) (change, error) {
	name := subscription.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	out := change{
		about: c.Action + " subscription " + name.Subject(),
		reach: previewapi.Scope{Cluster: c.Cluster, Namespace: c.Namespace},
	}
	out.intent = func(ctx context.Context, u *unit.Work) error {
		action, err := actionOn(ctx, u, events.KindSubscription, name.Subject(), c.Action)
		at := access.Target{Cluster: c.Cluster, Namespace: c.Namespace}
		if c.Spec != nil {
			at.Catalog = access.CatalogName(c.Spec.CatalogNamespace, c.Spec.Catalog)
		}
		if err == nil {
			err = allowed(u.Caller, verbOf[action], access.Subscriptions, at)
		}
		switch {
		case err != nil:
		case action == model.PreviewCreate:
			_, err = s.Subscriptions.CreateIn(ctx, u, name,
				model.ChangeSubscription{Metadata: c.Metadata, SubscriptionSpec: *c.Spec}, how)
		case action == model.PreviewReplace:
			_, err = s.Subscriptions.ChangeIn(ctx, u, name,
				model.ChangeSubscription{Metadata: c.Metadata, SubscriptionSpec: *c.Spec}, how)
		default:
			err = s.Subscriptions.DeleteIn(ctx, u, name)
		}
		return err
	}
	return out, needsSpec(c.Action, c.Spec != nil, "subscription "+name.Subject(), at)
}

func (s *Service) groupChange(c model.PreviewOperatorGroup, at string) (change, error) {
	name := operatorgroup.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	out := change{
		about: c.Action + " operatorgroup " + name.Subject(),
		reach: previewapi.Scope{Cluster: c.Cluster, Namespace: c.Namespace},
	}
	out.intent = func(ctx context.Context, u *unit.Work) error {
		action, err := actionOn(ctx, u, events.KindOperatorGroup, name.Subject(), c.Action)
		if err == nil {
			at := access.Target{Cluster: c.Cluster, Namespace: c.Namespace}
			err = allowed(u.Caller, verbOf[action], access.OperatorGroups, at)
		}
		switch {
		case err != nil:
		case action == model.PreviewCreate:
			_, err = s.Groups.CreateIn(ctx, u, name,
				model.ChangeOperatorGroup{Metadata: c.Metadata, OperatorGroupSpec: *c.Spec})
		case action == model.PreviewReplace:
			_, err = s.Groups.ChangeIn(ctx, u, name,
				model.ChangeOperatorGroup{Metadata: c.Metadata, OperatorGroupSpec: *c.Spec})
		default:
			err = s.Groups.DeleteIn(ctx, u, name)
		}
		return err
	}
	return out, needsSpec(c.Action, c.Spec != nil, "operator group "+name.Subject(), at)
}

func (s *Service) catalogChange(c model.PreviewCatalog, how model.Validate, at string) (change, error) {
	name := catalog.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	where := access.CatalogTarget(c.Cluster, c.Namespace, c.Name)
	settings := c.Disabled != nil || c.Priority != nil
	switch {
	case c.Remove && !settings && c.Revision == "":
		return change{about: "remove catalog " + name.Subject(), intent: func(ctx context.Context, u *unit.Work) error {
			if err := allowed(u.Caller, access.Delete, access.Catalogs, where); err != nil {
				return err
			}
			return s.Catalogs.RemoveIn(ctx, u, name)
		}}, nil
	case c.Revision != "" && !settings && !c.Remove:
		return change{
			about: "revision " + c.Revision + " of catalog " + name.Subject(),
			may: func(who model.Caller) error {
				return allowed(who, access.Update, access.Catalogs, where)
			},
			hypothesis: func() (previewapi.Hypothesis, error) {
				return previewapi.NewHypothesis(name.Subject(), 0,
					events.CatalogRevisionPublished{Revision: c.Revision})
			},
			why: "a revision comes into service with its catalog's source: let the source have it",
		}, nil
	case settings && !c.Remove && c.Revision == "":
		//nolint:unparam // PatchIn takes patches that may fail
		patch := func(in model.ChangeCatalog) (model.ChangeCatalog, error) {
			in.Disabled, in.Priority = *cmp.Or(c.Disabled, &in.Disabled), *cmp.Or(c.Priority, &in.Priority)
			return in, nil
		}
		return change{about: "change catalog " + name.Subject(), intent: func(ctx context.Context, u *unit.Work) error {
			if err := allowed(u.Caller, access.Update, access.Catalogs, where); err != nil {
				return err
			}
			_, err := s.Catalogs.PatchIn(ctx, u, name, how, patch)
			return err
		}}, nil
	default:
		return change{}, errs.New(errs.Invalid,
			"change exactly one thing of catalog %s: its revision, its settings, or remove it", name.Subject()).At(
			at, rule.OneOf)
	}
}

func (s *Service) policyChange(c model.PreviewPolicy, at string) (change, error) {
	if c.Remove == (c.Spec != nil) {
		return change{}, errs.New(errs.Invalid, "approval policy %s: give either a spec or remove, not both",
			c.Name).At(at, rule.OneOf)
	}
	if c.Remove {
		return change{about: "remove approvalpolicy " + c.Name, intent: func(ctx context.Context, u *unit.Work) error {
			if err := allowed(u.Caller, access.Delete, access.ApprovalPolicies, access.Target{}); err != nil {
				return err
			}
			return s.Policies.DeleteIn(ctx, u, c.Name)
		}}, nil
	}
	return change{about: "set approvalpolicy " + c.Name, intent: func(ctx context.Context, u *unit.Work) error {
		if err := allowed(u.Caller, access.Update, access.ApprovalPolicies, access.Target{}); err != nil {
			return err
		}
		_, err := s.Policies.SetIn(ctx, u, c.Name, model.SetApprovalPolicy{
			Metadata: c.Metadata, ApprovalPolicySpec: *c.Spec,
		})
		return err
	}}, nil
}

func operatorChange(c model.PreviewOperator) change {
	subject := c.Cluster + "/" + c.Namespace + "/" + c.Name
	return change{
		about: "remove operator " + subject,
		reach: previewapi.Scope{Cluster: c.Cluster, Namespace: c.Namespace},
		may: func(who model.Caller) error {
			at := access.Target{Cluster: c.Cluster, Namespace: c.Namespace}
			return allowed(who, access.Delete, access.Operators, at)
		},
		hypothesis: func() (previewapi.Hypothesis, error) {
			return previewapi.NewHypothesis(subject, 0, events.CSVRemoved{Reason: "Removed"})
		},
		why: "an installed operator is uninstalled by a request of its own, with the digest of its removal plan",
	}
}
