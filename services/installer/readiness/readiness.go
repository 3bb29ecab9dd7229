package readiness

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of causes, where Kubernetes has a word in its words.
const (
	ReasonAdmissionDenied   = "AdmissionDenied"        // a webhook or policy refuses its Pods
	ReasonWebhookFailed     = "AdmissionWebhookFailed" // a webhook that is asked about its Pods does not answer
	ReasonQuota             = "QuotaExceeded"
	ReasonLimits            = "LimitRangeViolated"
	ReasonPodSecurity       = "PodSecurityViolated"
	ReasonNoAccount         = "ServiceAccountNotFound"
	ReasonFailedCreate      = "FailedCreate" // the API server refuses its Pods for another reason
	ReasonUnschedulable     = "Unschedulable"
	ReasonSchedulingGated   = "SchedulingGated"
	ReasonImagePull         = "ImagePullFailed"
	ReasonContainerConfig   = "CreateContainerConfigError"
	ReasonContainerStart    = "CreateContainerError"
	ReasonCrashLoop         = "CrashLoopBackOff"
	ReasonOutOfMemory       = "OOMKilled"
	ReasonVolume            = "FailedMount"
	ReasonSandbox           = "FailedCreatePodSandBox"
	ReasonPodFailed         = "PodFailed"
	ReasonContainersUnready = "ContainersNotReady"
	ReasonPaused            = "DeploymentPaused"
)

// Observed is what a cluster shows of a Deployment.
type Observed struct {
	Deployment  appsv1.Deployment
	ReplicaSets []appsv1.ReplicaSet
	Pods        []corev1.Pod
	Events      []corev1.Event // of its Pods
}

// Cause is why a Deployment is not ready.
type Cause struct {
	Reason  string
	Message string
	// Webhook is the admission webhook that is to blame, "" for none.
	Webhook string
}

// AdmissionRefusal is a cause that the Deployment itself shows: the API server refuses its Pods. It needs nothing else
// to be read.
func AdmissionRefusal(d appsv1.Deployment) (Cause, bool) {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return Observed{Deployment: d}.refusal(c.Message), true
		}
	}
	return Cause{}, false
}

// Explain names the cause that is to be fixed first: what keeps Pods from being made, then what keeps the Pods of
// the present ReplicaSet from being ready, the surest first. False means that nothing of what was seen says why.
func Explain(s Observed) (Cause, bool) {
	if c, ok := AdmissionRefusal(s.Deployment); ok {
		return c, true
	}
	present := s.currentReplicaSet()
	if present != nil {
		for _, c := range present.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure && c.Status == corev1.ConditionTrue {
				return s.refusal(c.Message), true
			}
		}
	}
	var found []finding
	for _, p := range s.unready(present) {
		found = append(found, s.ofPod(p))
	}
	slices.SortFunc(found, func(a, b finding) int {
		return cmp.Or(
			a.rank-b.rank, strings.Compare(a.Message, b.Message))
	})
	if len(found) > 0 && found[0].rank < rankNothing {
		return found[0].Cause, true
	}
	for _, c := range s.Deployment.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse &&
			c.Reason != deadlineExceeded && c.Message != "" {
			return s.refusal(c.Message), true
		}
	}
	if s.Deployment.Spec.Paused {
		return Cause{Reason: ReasonPaused, Message: "it is paused (spec.paused)"}, true
	}
	return Cause{}, false
}

// Unexplained are the UIDs of Pods that are not ready and do not say why themselves: Events may.
func Unexplained(s Observed) []string {
	var out []string
	for _, p := range s.unready(s.currentReplicaSet()) {
		if f := (Observed{Deployment: s.Deployment, ReplicaSets: s.ReplicaSets}).ofPod(p); f.rank >= rankVague {
			out = append(out, string(p.UID))
		}
	}
	slices.Sort(out)
	return out
}

const (
	deadlineExceeded   = "ProgressDeadlineExceeded"
	annotationRevision = "deployment.kubernetes.io/revision"
)

// currentReplicaSet is the ReplicaSet of the newest revision, nil where none is known.
func (s Observed) currentReplicaSet() *appsv1.ReplicaSet {
	var newest *appsv1.ReplicaSet
	best := int64(-1)
	for i := range s.ReplicaSets {
		r := &s.ReplicaSets[i]
		if !ownedBy(r.OwnerReferences, s.Deployment.UID) {
			continue
		}
		n, err := strconv.ParseInt(r.Annotations[annotationRevision], 10, 64)
		if err != nil {
			n = 0
		}
		if n > best {
			newest, best = r, n
		}
	}
	return newest
}

// unready are the Pods of a ReplicaSet that are not ready.
func (s Observed) unready(of *appsv1.ReplicaSet) []corev1.Pod {
	if of == nil {
		return nil
	}
	var out []corev1.Pod
	for _, p := range s.Pods {
		if ownedBy(p.OwnerReferences, of.UID) && p.DeletionTimestamp == nil && !isTrue(p, corev1.PodReady) {
			out = append(out, p)
		}
	}
	return out
}

func ownedBy[UID ~string](owners []metav1.OwnerReference, uid UID) bool {
	return slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return string(o.UID) == string(uid) })
}

func isTrue(p corev1.Pod, t corev1.PodConditionType) bool {
	c := condition(p, t)
	return c != nil && c.Status == corev1.ConditionTrue
}

func condition(p corev1.Pod, t corev1.PodConditionType) *corev1.PodCondition {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &p.Status.Conditions[i]
}

// Ranks of findings: of several Pods the one with the surest is told.
const (
	rankSure    = iota // the Pod says it
	rankVague          // it says that something is wrong, and an Event may say what
	rankWaiting        // it may merely need time
	rankNothing
)

// finding is what one Pod shows.
type finding struct {
	Cause
	rank int
}

func (s Observed) ofPod(p corev1.Pod) finding {
	if c := condition(p, corev1.PodScheduled); c != nil && c.Status == corev1.ConditionFalse {
		return s.unscheduled(c)
	}
	if p.Status.Phase == corev1.PodFailed {
		return certain(ReasonPodFailed, strings.TrimSuffix(
			fmt.Sprintf("its Pod failed: %s: %s", p.Status.Reason, s.stable(p.Status.Message)), ": "))
	}
	worst := finding{rank: rankNothing}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if f := s.ofContainer(p, c); f.rank < worst.rank {
				worst = f
			}
		}
		if worst.rank < rankWaiting {
			break // later containers wait for these
		}
	}
	if worst.rank >= rankVague {
		if f, ok := s.ofEvents(p, worst); ok {
			return f
		}
	}
	return worst
}

func certain(reason, message string) finding {
	return finding{Cause: Cause{Reason: reason, Message: message}, rank: rankSure}
}

// unscheduled reads what the scheduler says: how many nodes there are and how many each hindrance concerns changes all
// the time.
func (s Observed) unscheduled(c *corev1.PodCondition) finding {
	if c.Reason == corev1.PodReasonSchedulingGated {
		return certain(ReasonSchedulingGated, "its Pods wait for scheduling gates to be removed")
	}
	if c.Reason != corev1.PodReasonUnschedulable {
		return finding{
			Cause: Cause{Reason: ReasonUnschedulable, Message: "no node was found for its Pods yet"},
			rank:  rankVague,
		}
	}
	return certain(ReasonUnschedulable, "no node takes its Pods: "+schedulingReasons(s.stable(c.Message)))
}

// schedulingReasons are the reasons in a message of the scheduler, such as "0/3 nodes are available: 1 Insufficient
// cpu, 2 node(s) had untolerated taint {a: b}. preemption: …".
func schedulingReasons(message string) string {
	_, rest, ok := strings.Cut(message, "nodes are available: ")
	if !ok {
		return message
	}
	// What follows the sentence is why nothing was driven out for it: "rules. no new claims to deallocate, preemption:
	// …".
	rest, _, _ = strings.Cut(rest, ". ")
	var list []string
	for one := range strings.SplitSeq(strings.TrimRight(rest, ". "), ", ") {
		if n, what, ok := strings.Cut(one, " "); ok && isCount(n) {
			one = what
		}
		list = append(list, one)
	}
	slices.Sort(list)
	return strings.Join(slices.Compact(list), ", ")
}

func isCount(s string) bool {
	_, err := strconv.Atoi(s)
	return err == nil
}

func (s Observed) ofContainer(p corev1.Pod, c corev1.ContainerStatus) finding {
	name := "container " + c.Name
	if w := c.State.Waiting; w != nil {
		switch w.Reason {
		case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
			"RegistryUnavailable", "SignatureValidationFailed":
			detail := pullDetail(w.Message)
			f := certain(ReasonImagePull, withDetail(name+": image "+imageOf(p, c)+" cannot be pulled",
				s.stable(detail)))
			if detail == "" {
				f.rank = rankVague
			}
			return f
		case "CreateContainerConfigError":
			return certain(ReasonContainerConfig, withDetail(name+" cannot be made", s.stable(w.Message)))
		case "CreateContainerError", "RunContainerError", "PreStartHookError", "PostStartHookError", "StartError":
			return certain(ReasonContainerStart, withDetail(name+" cannot be started", s.stable(w.Message)))
		}
	}
	if t := ending(c); t != nil && !c.Ready {
		return s.ended(name, t)
	}
	switch {
	case c.Ready:
	case c.State.Running != nil:
		return finding{
			Cause: Cause{Reason: ReasonContainersUnready, Message: name + " runs and is not ready"},
			rank:  rankWaiting,
		}
	case c.State.Waiting != nil:
		return finding{
			Cause: Cause{Reason: ReasonContainersUnready, Message: name + " is not started yet"},
			rank:  rankWaiting,
		}
	}
	return finding{rank: rankNothing}
}

// ending is how a container that is started again and again ended last, nil where it did not; an init container that is
// done is none.
func ending(c corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	switch {
	case c.State.Terminated != nil && (c.State.Terminated.ExitCode != 0 || c.RestartCount > 0):
		return c.State.Terminated
	case c.State.Terminated == nil && c.LastTerminationState.Terminated != nil:
		return c.LastTerminationState.Terminated
	case c.State.Waiting != nil && c.State.Waiting.Reason == ReasonCrashLoop:
		return &corev1.ContainerStateTerminated{}
	}
	return nil
}

func (s Observed) ended(name string, t *corev1.ContainerStateTerminated) finding {
	if t.Reason == ReasonOutOfMemory {
		return certain(ReasonOutOfMemory, name+" was ended since it used more memory than its limit")
	}
	said := name + " ends after each start"
	switch {
	case t.Signal != 0:
		said += fmt.Sprintf(", by signal %d", t.Signal)
	case t.ExitCode != 0:
		said += fmt.Sprintf(", with exit code %d", t.ExitCode)
	case t.Reason != "":
		said += ", with exit code 0"
	}
	return certain(ReasonCrashLoop, withDetail(said, s.stable(lastError(t.Message))))
}

// imageOf is the image as the Deployment names it: a status may name another form of it.
func imageOf(p corev1.Pod, c corev1.ContainerStatus) string {
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, one := range list {
			if one.Name == c.Name {
				return one.Image
			}
		}
	}
	return c.Image
}

func withDetail(text, detail string) string {
	if detail == "" {
		return text
	}
	return text + ": " + detail
}

// ofEvents adds what the newest Warning about a Pod says.
func (s Observed) ofEvents(p corev1.Pod, f finding) (finding, bool) {
	var newest *corev1.Event
	for i := range s.Events {
		e := &s.Events[i]
		if e.InvolvedObject.UID != p.UID || e.Type != corev1.EventTypeWarning || explained(e) == "" {
			continue
		}
		if f.Reason == ReasonImagePull && explained(e) != ReasonImagePull {
			continue
		}
		if newest == nil || at(newest).Before(at(e)) {
			newest = e
		}
	}
	if newest == nil {
		return f, false
	}
	switch reason := explained(newest); reason {
	case ReasonImagePull:
		if f.Reason != ReasonImagePull {
			return f, false
		}
		return certain(reason, withDetail(f.Message, s.stable(pullDetail(newest.Message)))), true
	case ReasonContainersUnready:
		if f.Reason != reason {
			return f, false
		}
		return certain(reason, withDetail(f.Message, s.stable(newest.Message))), true
	case ReasonUnschedulable:
		return certain(reason, "no node takes its Pods: "+schedulingReasons(s.stable(newest.Message))), true
	default:
		return certain(reason, s.stable(newest.Message)), true
	}
}

// explained is the reason that an Event gives, "" for one that explains nothing.
func explained(e *corev1.Event) string {
	switch e.Reason {
	case "FailedMount", "FailedAttachVolume", "FailedMapVolume":
		return ReasonVolume
	case "FailedCreatePodSandBox":
		return ReasonSandbox
	case "FailedScheduling":
		return ReasonUnschedulable
	case "Unhealthy":
		return ReasonContainersUnready
	case "Failed":
		if strings.HasPrefix(e.Message, pullFailed) {
			return ReasonImagePull
		}
	}
	return ""
}

// at is when an Event happened last, in the words of either of its APIs.
func at(e *corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil:
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	}
	return &metav1.Time{Time: e.EventTime.Time}
}
