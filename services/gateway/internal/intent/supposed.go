package intent

import (
	"cmp"
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/whatif"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// supposed is one change of a preview, ready to be tried.
type supposed struct {
	about string // for the record of questions
	// intent carries it out; nil for what no intent can do.
	intent func(ctx context.Context, tx pgx.Tx) error
	// hypothesis is the event of what no intent can do, and why says so.
	hypothesis func() (whatif.Hypothesis, error)
	why        string
}

// suppose reads one change of a preview.
func (s *Service) suppose(who model.Caller, c model.PreviewChange, how model.Validate) (supposed, error) {
	given := 0
	for _, there := range []bool{c.Subscription != nil, c.OperatorGroup != nil, c.Catalog != nil, c.ApprovalPolicy != nil, c.Operator != nil} {
		if there {
			given++
		}
	}
	if given != 1 {
		return supposed{}, errs.New(errs.Invalid, "a change of a preview is of one thing: %d are given", given).At("/changes", rule.OneOf)
	}
	switch {
	case c.Subscription != nil:
		return s.supposeSubscription(who, *c.Subscription, how)
	case c.OperatorGroup != nil:
		return s.supposeGroup(who, *c.OperatorGroup)
	case c.Catalog != nil:
		return s.supposeCatalog(who, *c.Catalog, how)
	case c.ApprovalPolicy != nil:
		return s.supposePolicy(who, *c.ApprovalPolicy)
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

func needsSpec(action string, has bool, what string) error {
	if action != model.PreviewDelete && !has {
		return errs.New(errs.Invalid, "%s is to be %sd, and no spec is given", what, strings.TrimSuffix(action, "e")).At("/changes/spec", rule.Required)
	}
	return nil
}

func (s *Service) supposeSubscription(who model.Caller, c model.PreviewSubscription, how model.Validate) (supposed, error) {
	name := subscription.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	out := supposed{about: c.Action + " subscription " + name.Subject()}
	out.intent = func(ctx context.Context, tx pgx.Tx) error {
		action, err := s.action(ctx, tx, who, events.KindSubscription, name.Subject(), c.Action)
		switch {
		case err != nil:
		case action == model.PreviewCreate:
			_, err = s.CreateSubscription(ctx, who, name, *c.Spec, how)
		case action == model.PreviewReplace:
			_, err = s.ChangeSubscription(ctx, who, name, *c.Spec, how)
		default:
			_, err = s.DeleteSubscription(ctx, who, name)
		}
		return err
	}
	return out, needsSpec(c.Action, c.Spec != nil, "subscription "+name.Subject())
}

func (s *Service) supposeGroup(who model.Caller, c model.PreviewOperatorGroup) (supposed, error) {
	name := operatorgroup.Name{Cluster: c.Cluster, Namespace: c.Namespace, Name: c.Name}
	out := supposed{about: c.Action + " operatorgroup " + name.Subject()}
	out.intent = func(ctx context.Context, tx pgx.Tx) error {
		action, err := s.action(ctx, tx, who, events.KindOperatorGroup, name.Subject(), c.Action)
		switch {
		case err != nil:
		case action == model.PreviewCreate:
			_, err = s.CreateOperatorGroup(ctx, who, name, *c.Spec)
		case action == model.PreviewReplace:
			_, err = s.ChangeOperatorGroup(ctx, who, name, *c.Spec)
		default:
			_, err = s.DeleteOperatorGroup(ctx, who, name)
		}
		return err
	}
	return out, needsSpec(c.Action, c.Spec != nil, "operator group "+name.Subject())
}

func (s *Service) supposeCatalog(who model.Caller, c model.PreviewCatalog, how model.Validate) (supposed, error) {
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
			hypothesis: func() (whatif.Hypothesis, error) {
				return whatif.Suppose(name.Subject(), 0, events.CatalogRevisionPublished{Revision: c.Revision})
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
		return supposed{}, errs.New(errs.Invalid, "say one thing of catalog %s: a revision, that it is removed, or its settings", name.Subject()).At("/changes/catalog", rule.OneOf)
	}
}

func (s *Service) supposePolicy(who model.Caller, c model.PreviewPolicy) (supposed, error) {
	if c.Remove == (c.Spec != nil) {
		return supposed{}, errs.New(errs.Invalid, "approval policy %s is to be removed or has a spec: say one of them", c.Name).At("/changes/approvalPolicy", rule.OneOf)
	}
	if c.Remove {
		return supposed{about: "remove approvalpolicy " + c.Name, intent: func(ctx context.Context, _ pgx.Tx) error {
			_, err := s.DeleteApprovalPolicy(ctx, who, c.Name)
			return err
		}}, nil
	}
	return supposed{about: "set approvalpolicy " + c.Name, intent: func(ctx context.Context, _ pgx.Tx) error {
		_, err := s.SetApprovalPolicy(ctx, who, c.Name, *c.Spec)
		return err
	}}, nil
}

func supposeOperator(c model.PreviewOperator) supposed {
	subject := c.Cluster + "/" + c.Namespace + "/" + c.Name
	return supposed{
		about: "remove operator " + subject,
		hypothesis: func() (whatif.Hypothesis, error) {
			return whatif.Suppose(subject, 0, events.CSVRemoved{Reason: "Removed"})
		},
		why: "an installed operator is removed in its cluster; no intent does so",
	}
}
