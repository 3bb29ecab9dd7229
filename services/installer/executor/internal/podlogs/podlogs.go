package podlogs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	// logTime bounds one log: a node that does not answer keeps those of others from nobody.
	logTime = 3 * time.Second
	// maxPods and maxReplicaSets bound what is read of one Deployment; MaxLogContainers bounds what is told of it.
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
	pods, err := r.pods(ctx, q)
	if err != nil {
		return nil, r.understood(err)
	}
	sources, err := sourcesOf(pods, q)
	if err != nil {
		return nil, err
	}
	return r.read(ctx, q, sources, after)
}

// pods are those of the Deployments that Chandler installed of the operator: of ReplicaSets that these control, since a
// selector alone may choose the pods of somebody else.
func (r Reader) pods(ctx context.Context, q protocol.LogQuestion) ([]corev1.Pod, error) {
	deployments, err := r.deployments(ctx, q)
	if err != nil {
		return nil, err
	}
	var out []corev1.Pod
	for i := range deployments {
		d := &deployments[i]
		selector := metav1.FormatLabelSelector(d.Spec.Selector)
		sets, err := kube.ListAs[appsv1.ReplicaSet](ctx, r.Client, kube.GVKReplicaSet, q.Namespace,
			metav1.ListOptions{LabelSelector: selector, Limit: maxReplicaSets})
		if err != nil {
			return nil, err
		}
		pods, err := kube.ListAs[corev1.Pod](ctx, r.Client, kube.GVKPod, q.Namespace,
			metav1.ListOptions{LabelSelector: selector, Limit: maxPods})
		if err != nil {
			return nil, err
		}
		for _, p := range pods {
			if (q.Pod == "" || p.Name == q.Pod) && slices.ContainsFunc(sets, func(s appsv1.ReplicaSet) bool {
				return metav1.IsControlledBy(&s, d) && metav1.IsControlledBy(&p, &s)
			}) {
				out = append(out, p)
			}
		}
	}
	if len(out) == 0 && q.Pod != "" {
		return nil, errs.New(errs.NotFound, "operator %s in namespace %s of cluster %s has no pod %s: its pods are those of "+
			"its Deployments", q.CSV, q.Namespace, r.Cluster, q.Pod).At("query.pod", "pod-of-operator")
	}
	slices.SortFunc(out, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
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

// read reads the logs one after the other; each has the same share of the answer, so that none of them crowds out the
// others.
func (r Reader) read(ctx context.Context, q protocol.LogQuestion, sources []source, after cursor) (
	protocol.LogAnswer, error,
) {
	answer := protocol.LogAnswer{Containers: []protocol.ContainerLog{}}
	if n := len(sources) - protocol.MaxLogContainers; n > 0 {
		sources, answer.LeftOut = sources[:protocol.MaxLogContainers], n
	}
	next := cursor{}
	for _, s := range sources {
		from, known := after[s.key()]
		p, err := r.container(ctx, q, s, from, known, protocol.MaxLogBytes/len(sources))
		if err != nil {
			return answer, err
		}
		next[s.key()] = p.position
		answer.More = answer.More || p.more
		answer.Containers = append(answer.Containers, protocol.ContainerLog{
			Pod: s.pod, Container: s.container, Choices: s.choices, Lines: p.lines, Problem: p.problem,
		})
	}
	answer.After = next.String()
	return answer, nil
}

// container reads the log of one container. What a container wrote last before it was restarted is read first: that is
// why people look.
func (r Reader) container(ctx context.Context, q protocol.LogQuestion, s source, from position, known bool, room int) (
	part, error,
) {
	o := corev1.PodLogOptions{Container: s.container, Previous: q.Previous}
	switch {
	case q.After == "":
		return r.begin(ctx, q, s, o, room)
	case !known || q.Previous || s.restarts <= from.restarts:
		from.restarts = max(from.restarts, s.restarts)
		return r.log(ctx, s, o, from, room)
	}
	o.Previous = true
	last, err := r.log(ctx, s, o, from, room)
	if err != nil || last.more {
		return last, err
	}
	o.Previous = false
	p, err := r.log(ctx, s, o, position{restarts: s.restarts}, room-len(last.lines))
	p.lines = slices.Concat(last.lines, p.lines)
	if p.position.at.IsZero() { // it has not written anything yet
		p.position.at, p.position.lines = last.position.at, last.position.lines
	}
	return p, err
}

// begin reads a log for the first time. Where no line is young enough, what comes later begins behind the last one that
// there was before the others were asked for, so that none is lost in between.
func (r Reader) begin(ctx context.Context, q protocol.LogQuestion, s source, o corev1.PodLogOptions, room int) (
	part, error,
) {
	start := position{restarts: s.restarts}
	none := q.Tail != nil && *q.Tail == 0
	if !none && q.SinceSeconds == 0 {
		o.TailLines = q.Tail
		return r.log(ctx, s, o, start, room)
	}
	one := int64(1)
	o.TailLines = &one
	last, err := r.log(ctx, s, o, start, room)
	if err != nil || last.problem != "" || none {
		last.lines, last.more = nil, false
		return last, err
	}
	o.TailLines, o.SinceSeconds = q.Tail, &q.SinceSeconds
	p, err := r.log(ctx, s, o, start, room)
	if p.position.at.IsZero() {
		p.position = last.position
	}
	return p, err
}

// log reads one log from a position. What the API server says against it, such as that the container has not started,
// is part of the answer; that Chandler may not read it is an error.
func (r Reader) log(ctx context.Context, s source, o corev1.PodLogOptions, from position, room int) (part, error) {
	o.Timestamps = true
	if !from.at.IsZero() {
		since := metav1.NewTime(from.at.Truncate(time.Second))
		o.SinceTime = &since
	}
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	stream, err := kube.PodLog(ctx, r.Client, s.namespace, s.pod, o)
	if err != nil {
		return r.problem(err, from)
	}
	p, err := readLines(stream, from, room, s.ended || o.Previous)
	if closing := stream.Close(); err == nil {
		err = closing
	}
	if err != nil {
		broken, failed := r.problem(err, p.position)
		broken.lines, broken.more = p.lines, len(p.lines) > 0
		return broken, failed
	}
	return p, nil
}

func (r Reader) problem(err error, at position) (part, error) {
	if apierrors.IsForbidden(err) {
		return part{}, r.understood(err)
	}
	text := err.Error()
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		text = status.ErrStatus.Message
	}
	if errors.Is(err, context.DeadlineExceeded) {
		text = "the node does not answer in time"
	}
	return part{position: at, problem: clip([]byte(text), maxProblem)}, nil
}

// understood says what is to be done about what the API server refuses.
func (r Reader) understood(err error) error {
	if !apierrors.IsForbidden(err) {
		return err
	}
	return errs.New(errs.Conflict, "Chandler may not read logs in cluster %s: %v: give %s the right again (Chandler binds "+
		"it to ClusterRole cluster-admin)", r.Cluster, err, kube.ExecutorUser).At("cluster", "executor-rights")
}
