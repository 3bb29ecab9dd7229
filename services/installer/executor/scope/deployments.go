package scope

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/csv"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Deployments are those that Chandler wrote into the namespace.
type Deployments struct {
	list   []appsv1.Deployment
	ByName map[string]*unstructured.Unstructured // as they were read last, also after Forget
}

// Forget has the Deployments read again.
func (d *Deployments) Forget() { d.list = nil }

// ReadDeployments are those that Chandler wrote, read once as long as nothing is written: when one moves meanwhile, the
// watch has the namespace reconciled again.
func (sc *Scope) ReadDeployments(ctx context.Context) ([]appsv1.Deployment, error) {
	if list := sc.Snapshot.Deployments.list; list != nil {
		return list, nil
	}
	list, err := sc.Env.Client.List(ctx, kube.GVKDeployment, sc.Namespace, kube.SelectManaged)
	if err != nil {
		return nil, err
	}
	read := Deployments{
		list: make([]appsv1.Deployment, len(list)), ByName: make(map[string]*unstructured.Unstructured, len(list)),
	}
	for i := range list {
		read.ByName[list[i].GetName()] = &list[i]
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &read.list[i]); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "decode deployment %s", list[i].GetName())
		}
	}
	sc.Snapshot.Deployments = read
	return read.list, nil
}

// OwnDeployments selects the Deployments that belong to the ClusterServiceVersion and look as they are to look now.
func (sc *Scope) OwnDeployments(m *Operator, deployments []appsv1.Deployment) []appsv1.Deployment {
	return slices.DeleteFunc(slices.Clone(deployments), func(d appsv1.Deployment) bool {
		if d.Labels[render.LabelOwner] != render.OwnerLabelValue(m.Name()) || d.DeletionTimestamp != nil {
			return true
		}
		want, known := sc.ExpectedDigest(m, d.Name)
		return known && want != d.Annotations[AnnotationRendered]
	})
}

// Running is the state of the Deployments that the API server calls.
func (sc *Scope) Running(m *Operator, deployments []appsv1.Deployment) csv.Components {
	names := map[string]bool{}
	for _, c := range sc.Called(m.CSV) {
		names[c.Deployment] = true
	}
	declared := slices.DeleteFunc(slices.Clone(m.CSV.Spec.Install.Spec.Deployments),
		func(d bundle.Deployment) bool { return !names[d.Name] })
	return csv.Observe(declared, sc.OwnDeployments(m, deployments), sc.UnreadyTexts(m))
}

// Called are the Deployments of an operator that the API server calls; none while it is declared in a wrong way,
// which its phase says.
func (sc *Scope) Called(c bundle.CSV) []render.Serving {
	if !Serves(c) {
		return nil
	}
	list, err := render.ServingOf(c, sc.Namespace)
	if err != nil {
		return nil
	}
	return list
}

// Serves reports an operator that the API server calls.
func Serves(c bundle.CSV) bool {
	return len(c.Spec.Webhooks) > 0 || len(c.Spec.APIServices.Owned) > 0
}

// UnreadyTexts is what was found out last about the Deployments of an operator that are not ready, by name.
func (sc *Scope) UnreadyTexts(m *Operator) map[string]string {
	texts := map[string]string{}
	for name, n := range sc.Found.Unready[m.Name()] {
		texts[name] = n.Message
	}
	return texts
}

// ExpectedDigest is the digest that a Deployment of an operator is to have; false while nothing says so.
func (sc *Scope) ExpectedDigest(m *Operator, deployment string) (string, bool) {
	if sc.Snapshot.Executions.Planned(m.Name()) {
		d, ok := sc.Found.Expected[m.Name()][deployment]
		return d, ok
	}
	a, ok := sc.RenderedState(m)
	if !ok || !sc.Snapshot.AtRest(m) {
		return "", false
	}
	d, ok := a.Digests[ObjectKey(kube.GVKDeployment.Kind, deployment)]
	return d, ok
}
