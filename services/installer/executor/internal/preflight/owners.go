package preflight

import (
	"context"
	"errors"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/side"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Owners are what the objects of a plan are in the cluster, in the plan's order.
type Owners struct {
	Taken  []string        // of those that belong to somebody else and are not to be had, whose they are
	Vacant []render.Object // not there at all
	Common []render.Object // other operators have them: package shared decides
}

// state is what one object is.
type state int

const (
	free state = iota // it may be written
	vacant
	common
)

// Taken says whose the objects of a plan are. What nobody else can have, since its name is made for its operator, is
// not asked for; of definitions there can be several owners, and what they may do is said by Definitions.
func Taken(ctx context.Context, c *kube.Epoch, q Question) (Owners, error) {
	objects := slices.DeleteFunc(slices.Clone(q.Objects), own)
	taken, failed, states := make([]string, len(objects)), make([]error, len(objects)), make([]state, len(objects))
	side.Each(len(objects), parallelReads, func(n int) {
		taken[n], states[n], failed[n] = takenBy(ctx, c, q, objects[n])
	})
	// All of them are asked, whatever one answers: trouble with each of them is then met once, not one a try.
	if err := errors.Join(failed...); err != nil {
		return Owners{}, err
	}
	var out Owners
	for n, o := range objects {
		switch {
		case states[n] == vacant:
			out.Vacant = append(out.Vacant, o)
		case states[n] == common:
			out.Common = append(out.Common, o)
		case taken[n] != "":
			out.Taken = append(out.Taken, taken[n])
		}
	}
	return out, nil
}

// parallelReads is how many objects are asked for at a time.
const parallelReads = 8

// takenBy says whose an object is that somebody else has, "" where it may be written.
func takenBy(ctx context.Context, c *kube.Epoch, q Question, o render.Object) (who string, is state, err error) {
	live, err := metadata(ctx, c, o)
	if err != nil {
		return "", free, err
	}
	switch {
	case live == nil:
		return "", vacant, nil
	case live.Labels[kube.LabelManaged] != "true":
		return "", free, nil // what the API server says of it when it is applied names the other manager
	case Formed(o) && kube.OwnerOf(live) != kube.Operator{}:
		if q.alone(live) {
			return "", free, nil
		}
		return "", common, nil
	}
	err = c.MayTake(ctx, live, &unstructured.Unstructured{Object: o.Body}, q.Managers[o.Resolving])
	if apierrors.IsConflict(err) {
		return err.Error(), free, nil
	}
	return "", free, err
}

// alone reports an object that only operators have which the plan brings or replaces.
func (q Question) alone(live *metav1.PartialObjectMetadata) bool {
	ours := func(o kube.Operator) bool {
		return slices.ContainsFunc(q.Leaving, func(name string) bool {
			return kube.Operator{
				Namespace: q.Namespace, Name: name,
			}.Label() == o
		})
	}
	if !ours(kube.OwnerOf(live)) {
		return false
	}
	for _, name := range kube.Alongside(live) {
		namespace, csv, _ := strings.Cut(name, "/")
		if !ours(kube.Operator{Namespace: namespace, Name: csv}.Label()) {
			return false
		}
	}
	return true
}

// Formed reports an object that operators can share and of which the form matters: an object of the bundle, by the name
// that it has there.
func Formed(o render.Object) bool {
	return render.Formed(o.GVK) && !own(o)
}

// own reports an object whose name is made for its operator, and a definition.
func own(o render.Object) bool {
	switch o.GVK {
	case gvkCRD, kube.GVKCSV, render.GVKValidatingWebhook, render.GVKMutatingWebhook:
		return true
	}
	labels, _, err := unstructured.NestedStringMap(o.Body, "metadata", "labels")
	return err == nil && labels[render.LabelPermissionsHash] != "" || labels[render.LabelOwner] == ""
}

func metadata(ctx context.Context, c *kube.Epoch, o render.Object) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := c.Limit(ctx)
	defer cancel()
	of := c.Metadata.Resource(kube.Resource(o.GVK))
	live, err := of.Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here, not an error
	}
	return live, err
}
