package intent

import (
	"cmp"
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/previewapi"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// supposed is one change of a preview, ready to be tried.
type supposed struct {
	about string // for the record of questions
	// reach is what it can touch at most; empty fields are all.
	reach previewapi.Scope
	// intent carries it out; nil for what no intent can do.
	intent func(ctx context.Context, tx pgx.Tx) error
	// hypothesis is the event of what no intent can do, and why says so.
	hypothesis func() (previewapi.Hypothesis, error)
	why        string
}

// beyond says why a change cannot be carried out after a look at the cluster and namespace alone to which a question is
// narrowed: it reaches others, and nobody has seen what becomes of them. It is "" where it does not.
func (c supposed) beyond(in model.AskPreview) string {
	if (in.Cluster == "" || in.Cluster == c.reach.Cluster) && (in.Namespace == "" || in.Namespace == c.reach.Namespace) {
		return ""
	}
	return "it is narrowed to " + cmp.Or(in.Cluster, "*") + "/" + cmp.Or(in.Namespace, "*") + ", and the change reaches further (" + c.about + "): preview it without narrowing"
}

// suppose reads one change of a preview; at is its place in the request.
func (s *Service) suppose(who model.Caller, c model.PreviewChange, how model.Validate, at string) (supposed, error) {
	given := 0
	for _, there := range []bool{c.Subscription != nil, c.OperatorGroup != nil, c.Catalog != nil, c.ApprovalPolicy != nil, c.Operator != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		return supposed{}, errs.New(errs.Invalid, "a change of a preview is of one thing: %d are given", given).At(at, rule.OneOf)
	}
	switch {
	case c.Subscription != nil:
		return s.supposeSubscription(who, *c.Subscription, how, at+"/subscription")
	case c.OperatorGroup != nil:
		return s.supposeGroup(who, *c.OperatorGroup, at+"/operatorGroup")
	case c.Catalog != nil:
		x, err := s.supposeCatalog(who, *c.Catalog, how, at+"/catalog")
		x.reach.Cluster = c.Catalog.Cluster // a cluster's own catalog is offered there alone
		return x, err
	case c.ApprovalPolicy != nil:
		return s.supposePolicy(who, *c.ApprovalPolicy, at+"/approvalPolicy")
	default:
		return supposeOperator(*c.Operator), nil
	}
}

// action says what apply means beside what is there, and refuses a change without a spec.
func (s *Service) action(ctx context.Context, tx pgx.Tx, who model.Caller, kind events.Kind, natural, action string) (string, error) {
	if action != model.PreviewApply {
		return action, nil
	}
	head, err := s.Log.Latest(ctx, tx, who.Tenant, kind, natural)
	if err != nil {
		return "", err
	}
	if head.Exists() {
		return model.PreviewReplace, nil
	}
	return model.PreviewCreate, nil
}

// becomes says of an action what is to become of something.
var becomes = map[string]string{
	model.PreviewApply: "created or replaced", model.PreviewCreate: "created", model.PreviewReplace: "replaced",
}

func needsSpec(action string, has bool, what, at string) error {
	if action != model.PreviewDelete && !has {
		return errs.New(errs.Invalid, "%s is to be %s, and no spec is given", what, becomes[action]).At(at+"/spec", rule.Required)
	}
	return nil
}

func (s *Service) supposeSubscription(who model.Caller, c model.PreviewSubscription, how model.Validate, at string) (supposed, error) {
	name := subscription.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	out := supposed{about: c.Action + " subscription " + name.Subject(), reach: previewapi.Scope{Cluster: c.Cluster, Namespace: c.Namespace}}
	out.intent = func(ctx context.Context, tx pgx.Tx) error {
		action, err := s.action(ctx, tx, who, events.KindSubscription, name.Subject(), c.Action)
		switch {
		case err != nil:
		case action == model.PreviewCreate:
			_, err = s.CreateSubscription(ctx, who, name, model.ChangeSubscription{Metadata: c.Metadata, SubscriptionSpec: *c.Spec}, how)
		case action == model.PreviewReplace:
			_, err = s.ChangeSubscription(ctx, who, name, model.ChangeSubscription{Metadata: c.Metadata, SubscriptionSpec: *c.Spec}, how)
		default:
			_, err = s.DeleteSubscription(ctx, who, name)
		}
		return err
	}
	return out, needsSpec(c.Action, c.Spec != nil, "subscription "+name.Subject(), at)
}

func (s *Service) supposeGroup(who model.Caller, c model.PreviewOperatorGroup, at string) (supposed, error) {
	name := operatorgroup.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	out := supposed{about: c.Action + " operatorgroup " + name.Subject(), reach: previewapi.Scope{Cluster: c.Cluster, Namespace: c.Namespace}}
	out.intent = func(ctx context.Context, tx pgx.Tx) error {
		action, err := s.action(ctx, tx, who, events.KindOperatorGroup, name.Subject(), c.Action)
		switch {
		case err != nil:
		case action == model.PreviewCreate:
			_, err = s.CreateOperatorGroup(ctx, who, name, model.ChangeOperatorGroup{Metadata: c.Metadata, OperatorGroupSpec: *c.Spec})
		case action == model.PreviewReplace:
			_, err = s.ChangeOperatorGroup(ctx, who, name, model.ChangeOperatorGroup{Metadata: c.Metadata, OperatorGroupSpec: *c.Spec})
		default:
			_, err = s.DeleteOperatorGroup(ctx, who, name)
		}
		return err
	}
	return out, needsSpec(c.Action, c.Spec != nil, "operator group "+name.Subject(), at)
}

func (s *Service) supposeCatalog(who model.Caller, c model.PreviewCatalog, how model.Validate, at string) (supposed, error) {
	name := catalog.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	settings := c.Disabled != nil || c.Priority != nil
	switch {
	case c.Remove && !settings && c.Revision == "":
		return supposed{about: "remove catalog " + name.Subject(), intent: func(ctx context.Context, _ pgx.Tx) error {
			_, err := s.RemoveCatalog(ctx, who, name)
			return err
		}}, nil
	case c.Revision != "" && !settings && !c.Remove:
		return supposed{
			about: "revision " + c.Revision + " of catalog " + name.Subject(),
			hypothesis: func() (previewapi.Hypothesis, error) {
				return previewapi.NewHypothesis(name.Subject(), 0, events.CatalogRevisionPublished{Revision: c.Revision})
			},
			why: "a revision comes into service with its catalog's source: let the source have it",
		}, nil
	case settings && !c.Remove && c.Revision == "":
		//nolint:unparam // PatchCatalog takes patches that may fail
		patch := func(in model.ChangeCatalog) (model.ChangeCatalog, error) {
			in.Disabled, in.Priority = *cmp.Or(c.Disabled, &in.Disabled), *cmp.Or(c.Priority, &in.Priority)
			return in, nil
		}
		return supposed{about: "change catalog " + name.Subject(), intent: func(ctx context.Context, _ pgx.Tx) error {
			_, err := s.PatchCatalog(ctx, who, name, how, patch)
			return err
		}}, nil
	default:
		return supposed{}, errs.New(errs.Invalid, "say one thing of catalog %s: a revision, that it is removed, or its settings", name.Subject()).At(at, rule.OneOf)
	}
}

func (s *Service) supposePolicy(who model.Caller, c model.PreviewPolicy, at string) (supposed, error) {
	if c.Remove == (c.Spec != nil) {
		return supposed{}, errs.New(errs.Invalid, "approval policy %s is to be removed or has a spec: say one of them", c.Name).At(at, rule.OneOf)
	}
	if c.Remove {
		return supposed{about: "remove approvalpolicy " + c.Name, intent: func(ctx context.Context, _ pgx.Tx) error {
			_, err := s.DeleteApprovalPolicy(ctx, who, c.Name)
			return err
		}}, nil
	}
	return supposed{about: "set approvalpolicy " + c.Name, intent: func(ctx context.Context, _ pgx.Tx) error {
		_, err := s.SetApprovalPolicy(ctx, who, c.Name, model.SetApprovalPolicy{Metadata: c.Metadata, ApprovalPolicySpec: *c.Spec})
		return err
	}}, nil
}

func supposeOperator(c model.PreviewOperator) supposed {
	subject := c.Cluster + "/" + c.Namespace + "/" + c.Name
	return supposed{
		about: "remove operator " + subject,
		reach: previewapi.Scope{Cluster: c.Cluster, Namespace: c.Namespace},
		hypothesis: func() (previewapi.Hypothesis, error) {
			return previewapi.NewHypothesis(subject, 0, events.CSVRemoved{Reason: "Removed"})
		},
		why: "an installed operator is uninstalled by a request of its own, after a look at the removal plan",
	}
}
