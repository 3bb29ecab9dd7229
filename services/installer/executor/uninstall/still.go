package uninstall

import (
	"context"
	"slices"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/removal"
)

// FilterCurrent keeps of what is to go what removing the operator would remove now, too: the log says what was looked
// at, and is no reason by itself to delete anything.
func (h Remover) FilterCurrent(ctx context.Context, q Question, steps []kube.Step) ([]kube.Step, error) {
	asked := q.CRDs
	if len(asked) > 0 { // one that is gone by now is no mistake of who asked for it
		q.CRDs = []string{removal.All}
	}
	now, err := Find(ctx, h.Client, q)
	if err != nil {
		return nil, err
	}
	return now.of(steps, asked), nil
}

// of are the steps that name objects of the plan, by action and UID; of definitions, those that were asked for.
func (f Found) of(steps []kube.Step, crds []string) []kube.Step {
	type part struct {
		action, uid string
		object      protocol.ObjectRef
	}
	goes := map[part]bool{}
	for _, s := range f.Plan.Steps {
		for _, o := range s.Objects {
			goes[part{s.Action, f.UIDs[o], o}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(steps), func(s kube.Step) bool {
		o := protocol.ObjectRef{Group: s.Group, Version: s.Version, Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
		unasked := s.Action != protocol.RemovalObjects && !slices.Contains(crds, s.Name) &&
			!slices.Contains(crds, removal.All)
		return s.UID == "" || unasked || !goes[part{s.Action, s.UID, o}]
	})
}
