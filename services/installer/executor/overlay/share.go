package overlay

import (
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/preflight"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/sharedobject"
)

// Share is an operator's part in an object that others may bring, too.
type Share struct {
	Owner   sharedobject.Owner
	Ref     protocol.ObjectRef
	Plan    string
	Manager string
	Grant   protocol.Grant // of the plan, with what approvers chose
}

// ShareOf is the part that an operator of namespace ns has in an object, nil where the object can be nobody else's.
func ShareOf(ns string, t scope.RenderTarget, o render.Object) (*Share, error) {
	if !preflight.Formed(o) || t.Bundle.Package == "" {
		return nil, nil //nolint:nilnil // it is nobody else's
	}
	form, err := sharedobject.Digest(o.Body)
	return &Share{
		Owner: sharedobject.Owner{Namespace: ns, Package: t.Bundle.Package, CSV: o.Resolving, Wants: form},
		Ref:   scope.RefIn(o), Plan: t.Plan, Manager: kube.Manager(ns, t.Bundle.Package),
	}, err
}
