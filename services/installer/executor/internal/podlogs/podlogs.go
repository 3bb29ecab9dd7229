package podlogs

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

const (
	// answerTime bounds an answer, so that those who wait for it hear what there is before they give up.
	answerTime = 8 * time.Second
	// maxPods and maxReplicaSets bound what is looked at of one Deployment; MaxLogContainers bounds what is told of it.
	maxPods, maxReplicaSets = 50, 50
	// defaultContainer is the annotation of a pod that kubectl reads.
	defaultContainer = "kubectl.kubernetes.io/default-container"
)

// Reader reads logs in one cluster.
type Reader struct {
	Client  *kube.Epoch
	Cluster string
}

// Answer answers one protocol.LogQuestion.
func (r Reader) Answer(ctx context.Context, raw json.RawMessage) (any, error) {
	var q protocol.LogQuestion
	if err := json.Unmarshal(raw, &q); err != nil {
		return nil, errs.Wrap(errs.Invalid, err, "read the question")
	}
	after, err := parseCursor(q.After)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	pods, more, err := r.pods(ctx, q)
	if err != nil {
		return nil, understood(r.Cluster, err)
	}
	sources, err := sourcesOf(pods, q)
	if err != nil {
		return nil, err
	}
	logs := logReader{cluster: r.Cluster, open: func(ctx context.Context, s source, o corev1.PodLogOptions) (
		io.ReadCloser, error,
	) {
		return kube.PodLog(ctx, r.Client, s.namespace, s.pod, o)
	}}
	answer, err := logs.read(ctx, q, sources, after)
	answer.MorePods = more
	return answer, err
}

// pods are those of the Deployments that Chandler installed of the operator: of ReplicaSets that these control, since a
// selector alone may choose the pods of somebody else. more says that there are some beyond those that were looked at.
func (r Reader) pods(ctx context.Context, q protocol.LogQuestion) (out []corev1.Pod, more bool, err error) {
	deployments, err := r.deployments(ctx, q)
	if err != nil {
		return nil, false, err
	}
	for i := range deployments {
		of, beyond, err := r.podsOf(ctx, q, &deployments[i])
		if err != nil {
			return nil, false, err
		}
		out, more = append(out, of...), more || beyond
	}
	if len(out) == 0 && q.Pod != "" {
		return nil, false, errs.New(errs.NotFound, "operator %s in namespace %s of cluster %s has no pod %s: its pods are "+
			"those of its Deployments", q.CSV, q.Namespace, r.Cluster, q.Pod).At("query.pod", "pod-of-operator")
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, more, nil
}

// podsOf are the pods of one Deployment. One that is asked for by its name is looked for by it, so that it is found
// among any number.
func (r Reader) podsOf(ctx context.Context, q protocol.LogQuestion, d *appsv1.Deployment) (
	out []corev1.Pod, more bool, err error,
) {
	selector := metav1.FormatLabelSelector(d.Spec.Selector)
	sets, moreSets, err := kube.PageAs[appsv1.ReplicaSet](ctx, r.Client, kube.GVKReplicaSet, q.Namespace,
		metav1.ListOptions{LabelSelector: selector, Limit: maxReplicaSets})
	if err != nil {
		return nil, false, err
	}
	these := metav1.ListOptions{LabelSelector: selector, Limit: maxPods}
	if q.Pod != "" {
		these.FieldSelector = fields.OneTermEqualSelector("metadata.name", q.Pod).String()
	}
	pods, morePods, err := kube.PageAs[corev1.Pod](ctx, r.Client, kube.GVKPod, q.Namespace, these)
	if err != nil {
		return nil, false, err
	}
	return slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return !slices.ContainsFunc(sets, func(s appsv1.ReplicaSet) bool {
			return metav1.IsControlledBy(&s, d) && metav1.IsControlledBy(&p, &s)
		})
	}), moreSets || morePods, nil
}

// deployments are those that the InstalledOperator names and that Chandler wrote for it.
func (r Reader) deployments(ctx context.Context, q protocol.LogQuestion) ([]appsv1.Deployment, error) {
	o, err := r.Client.GetServed(ctx, kube.GVKInstalledOperator, q.Namespace, q.CSV)
	if err != nil {
		return nil, err
	}
	if o == nil || o.GetLabels()[kube.LabelManaged] != "true" {
		return nil, errs.New(errs.NotFound, "operator %s is not installed in namespace %s of cluster %s", q.CSV,
			q.Namespace, r.Cluster)
	}
	m, err := scope.ParseOperator(o)
	if err != nil {
		return nil, err
	}
	named := m.CSV.Spec.Install.Spec.Deployments
	if q.Deployment != "" {
		named = slices.DeleteFunc(slices.Clone(named), func(d bundle.Deployment) bool { return d.Name != q.Deployment })
		if len(named) == 0 {
			return nil, errs.New(errs.NotFound, "operator %s has no Deployment %s: it has %s", q.CSV, q.Deployment,
				listed(m.CSV.Spec.Install.Spec.Deployments)).At("query.deployment", "deployment-of-operator")
		}
	}
	all, err := kube.ListAs[appsv1.Deployment](ctx, r.Client, kube.GVKDeployment, q.Namespace,
		metav1.ListOptions{LabelSelector: kube.SelectManaged})
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(d appsv1.Deployment) bool {
		return d.Labels[render.LabelOwner] != render.OwnerLabelValue(q.CSV) ||
			!slices.ContainsFunc(named, func(n bundle.Deployment) bool { return n.Name == d.Name })
	}), nil
}

func listed(deployments []bundle.Deployment) string {
	if len(deployments) == 0 {
		return "none"
	}
	names := make([]string, len(deployments))
	for i, d := range deployments {
		names[i] = d.Name
	}
	return strings.Join(names, ", ")
}

// source is the log of one container.
type source struct {
	namespace, pod, uid, container string
	restarts                       int32
	ended                          bool
	// choices are all containers of the pod, where nobody chose one of several.
	choices []string
}

// key is that of the source in a cursor.
func (s source) key() string { return keyOf(s.uid, s.container) }

// sourcesOf chooses the containers, as kubectl does: the one that is named, all, or the default one of each pod.
func sourcesOf(pods []corev1.Pod, q protocol.LogQuestion) ([]source, error) {
	var out []source
	known := map[string]bool{}
	for i := range pods {
		p := &pods[i]
		all := containersOf(p)
		for _, name := range all {
			known[name] = true
			if q.AllContainers || name == cmp.Or(q.Container, defaultOf(p)) {
				s := sourceOf(p, name)
				if !q.AllContainers && q.Container == "" && len(all) > 1 {
					s.choices = all
				}
				out = append(out, s)
			}
		}
	}
	if len(out) == 0 && q.Container != "" && len(pods) > 0 {
		return nil, errs.New(errs.NotFound, "no pod of operator %s has a container %s: there are %s", q.CSV, q.Container,
			strings.Join(slices.Sorted(maps.Keys(known)), ", ")).At("query.container", "container-of-pod")
	}
	return out, nil
}

func containersOf(p *corev1.Pod) []string {
	var names []string
	for _, c := range p.Spec.InitContainers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.Containers {
		names = append(names, c.Name)
	}
	for _, c := range p.Spec.EphemeralContainers {
		names = append(names, c.Name)
	}
	return names
}

func defaultOf(p *corev1.Pod) string {
	if name := p.Annotations[defaultContainer]; slices.Contains(containersOf(p), name) {
		return name
	}
	return p.Spec.Containers[0].Name // the API refuses a pod without one
}

func sourceOf(p *corev1.Pod, container string) source {
	s := source{namespace: p.Namespace, pod: p.Name, uid: string(p.UID), container: container}
	for _, status := range slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses,
		p.Status.EphemeralContainerStatuses) {
		if status.Name == container {
			s.restarts, s.ended = status.RestartCount, status.State.Terminated != nil
		}
	}
	return s
}
