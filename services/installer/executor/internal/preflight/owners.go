package preflight

import (
	"context"
	"errors"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
)

// Taken says of each object of the plan that belongs to somebody else in the cluster whose it is, in the plan's order, and
// which ones are not there at all. What nobody else can have, since its name is made for its operator, is not asked for; of
// definitions there can be several owners, and what they may do is said by Definitions.
func Taken(ctx context.Context, c *cluster.Epoch, q Question) (taken []string, vacant []render.Object, err error) {
	objects := slices.DeleteFunc(slices.Clone(q.Objects), own)
	taken, failed, there := make([]string, len(objects)), make([]error, len(objects)), make([]bool, len(objects))
	turns := make(chan struct{}, parallelReads)
	var running sync.WaitGroup
	for n, o := range objects {
		running.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			taken[n], there[n], failed[n] = takenBy(ctx, c, q, o)
		})
	}
	running.Wait()
	// All of them are asked, whatever one answers: trouble with each of them is then met once, not one a try.
	if err := errors.Join(failed...); err != nil {
		return nil, nil, err
	}
	for n, o := range objects {
		if !there[n] {
			vacant = append(vacant, o)
		}
	}
	return slices.DeleteFunc(taken, func(s string) bool { return s == "" }), vacant, nil
}

// parallelReads is how many objects are asked for at a time.
const parallelReads = 8

// takenBy says whose an object is that somebody else has, "" where it may be written.
func takenBy(ctx context.Context, c *cluster.Epoch, q Question, o render.Object) (who string, there bool, err error) {
	live, err := metadata(ctx, c, o)
	if err != nil {
		return "", false, err
	}
	if live == nil || live.Labels[cluster.LabelManaged] != "true" {
		return "", live != nil, nil // what the API server says of it when it is applied names the other manager
	}
	err = c.MayTake(ctx, live, &unstructured.Unstructured{Object: o.Body}, q.Managers[o.Resolving])
	if apierrors.IsConflict(err) {
		return err.Error(), true, nil
	}
	return "", true, err
}

// own reports an object whose name is made for its operator, and a definition.
func own(o render.Object) bool {
	switch o.GVK {
	case gvkCRD, cluster.GVKCSV, render.GVKValidatingWebhook, render.GVKMutatingWebhook:
		return true
	}
	labels, _, err := unstructured.NestedStringMap(o.Body, "metadata", "labels")
	return err == nil && labels[render.LabelPermissionsHash] != "" || labels[render.LabelOwner] == ""
}

func metadata(ctx context.Context, c *cluster.Epoch, o render.Object) (*metav1.PartialObjectMetadata, error) {
	ctx, cancel := c.Limit(ctx)
	defer cancel()
	of := c.Metadata.Resource(cluster.Resource(o.GVK))
	live, err := of.Namespace(o.Namespace).Get(ctx, o.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here, not an error
	}
	return live, err
}
