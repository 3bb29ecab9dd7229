package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

var gvkDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

const (
	// validFor is how long an answer holds without a hint: of a right that is given, and of a Deployment that bears
	// another name, no notification comes.
	validFor = 5 * time.Minute
	// deploymentsPage is how many Deployments are read at a time.
	deploymentsPage = 250
)

// OLMCluster is what is asked of a cluster about OLM.
type OLMCluster interface {
	List(ctx context.Context, gvk schema.GroupVersionKind, namespace, selector string) (
		[]unstructured.Unstructured, error)
	Page(ctx context.Context, r schema.GroupVersionResource, limit int64, from string) (
		items []unstructured.Unstructured, next string, err error)
	Foreign(ctx context.Context, gvk schema.GroupVersionKind, namespace, name string) (
		*metav1.PartialObjectMetadata, error)
	Allowed(ctx context.Context, a kube.Account, what authorizationv1.ResourceAttributes) (bool, error)
}

// OLM tells whether OLM itself is at work in a cluster: two masters over the same kinds undo each other's work.
//
// Chandler stops for it, so that it must be no matter of what somebody calls a Deployment: one counts whose service
// account may write the status of every ClusterServiceVersion of the cluster, which only an administrator of the
// cluster can give it. Where the definitions of OLM are not Chandler's, all Deployments are looked at for its programs.
type OLM struct {
	cluster OLMCluster
	log     *slog.Logger
	now     func() time.Time

	mu      sync.Mutex
	until   time.Time // how long the answer is validFor; zero is not at all
	turn    int       // counts the hints: an answer to a question that was asked before one is not kept
	running string
	passed  string // what looks like OLM and has not its rights
}

// NewOLM returns one that knows nothing yet.
func NewOLM(c OLMCluster, log *slog.Logger, now func() time.Time) *OLM {
	return &OLM{cluster: c, log: log, now: now}
}

// Known says by which Deployments OLM works as Running saw them last, "" where it does not.
func (o *OLM) Known() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.running
}

// Hint has the next call of Running ask the cluster.
func (o *OLM) Hint() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.until = time.Time{}
	o.turn++
}

// Running says by which Deployments OLM works, "" where it does not; changed reports another answer than the one
// before. It asks the cluster at first, so that nothing is done before it is known, after each hint, and once in a
// while.
func (o *OLM) Running(ctx context.Context) (running string, changed bool, err error) {
	o.mu.Lock()
	running, known, turn := o.running, o.now().Before(o.until), o.turn
	o.mu.Unlock()
	if known {
		return running, false, nil
	}
	found, passed, err := o.find(ctx)
	if err != nil {
		return "", false, fmt.Errorf("look for OLM: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	running = strings.Join(found, "; ")
	changed = o.running != running
	if o.running = running; turn == o.turn {
		o.until = o.now().Add(validFor)
	}
	if changed {
		o.log.WarnContext(ctx, "whether OLM is at work has changed", "running", running)
	}
	if text := strings.Join(passed, "; "); text != o.passed {
		o.passed = text
		o.log.InfoContext(ctx, "what looks like OLM and may not write ClusterServiceVersions is passed over",
			"deployments", text)
	}
	return running, changed, nil
}

// find sorts what looks like OLM by what its account may do.
func (o *OLM) find(ctx context.Context) (running, passed []string, err error) {
	list, err := o.deployments(ctx)
	if err != nil {
		return nil, nil, err
	}
	may := map[kube.Account]bool{}
	for _, c := range mirror.OLMCandidates(list) {
		account := kube.Account{Namespace: c.Namespace, Name: c.Account}
		allowed, asked := may[account]
		if !asked {
			what := authorizationv1.ResourceAttributes{
				Verb: "update", Group: mirror.GVKCSV.Group, Resource: kube.Resource(mirror.GVKCSV).Resource,
				Subresource: "status",
			}
			if allowed, err = o.cluster.Allowed(ctx, account, what); err != nil {
				return nil, nil, err
			}
			may[account] = allowed
		}
		if allowed {
			running = append(running, c.String())
		} else {
			passed = append(passed, c.Namespace+"/"+c.Name)
		}
	}
	return running, passed, nil
}

// deployments are those by OLM's names, and where OLM's definitions are not Chandler's all others, too.
func (o *OLM) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	list, err := o.cluster.List(ctx, gvkDeployment, metav1.NamespaceAll, mirror.OLMSelector())
	if err != nil {
		return nil, err
	}
	out, err := foreignDeployments(nil, list)
	if err != nil {
		return nil, err
	}
	definition, err := o.cluster.Foreign(ctx, gvkCRD, "", mirror.CSVDefinition)
	if err != nil || definition == nil || Made(definition) {
		return out, err
	}
	for from, more := "", true; more; more = from != "" {
		var page []unstructured.Unstructured
		if page, from, err = o.cluster.Page(ctx, kube.Resource(gvkDeployment), deploymentsPage, from); err != nil {
			return nil, err
		}
		page = slices.DeleteFunc(page, func(d unstructured.Unstructured) bool { return !runsSomething(d) })
		if out, err = foreignDeployments(out, page); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// runsSomething reports a Deployment that is wanted: of the others nothing is decoded.
func runsSomething(d unstructured.Unstructured) bool {
	n, found, err := unstructured.NestedInt64(d.Object, "spec", "replicas")
	return err != nil || !found || n > 0
}

// foreignDeployments adds those that are not objects of an operator that Chandler installed.
func foreignDeployments(out []appsv1.Deployment, list []unstructured.Unstructured) ([]appsv1.Deployment, error) {
	for i := range list {
		if l := list[i].GetLabels(); l[kube.LabelManaged] == "true" && l[render.LabelOwner] != "" {
			continue
		}
		var d appsv1.Deployment
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &d); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "decode deployment %s", list[i].GetName())
		}
		out = append(out, d)
	}
	return out, nil
}

// Made reports an object that the mirrors' field manager has written.
func Made(o metav1.Object) bool {
	return slices.ContainsFunc(o.GetManagedFields(),
		func(f metav1.ManagedFieldsEntry) bool { return f.Manager == manager })
}
