package csv

import (
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// Components is the state of the Deployments of an install strategy.
type Components struct {
	// Applied: each declared Deployment exists and is the one of this ClusterServiceVersion.
	Applied bool
	// Healthy: each is healthy (R-CSV-23). Implies Applied.
	Healthy bool
	// DeadlineExceeded: one has made no progress for its progressDeadlineSeconds.
	DeadlineExceeded bool
	// Message names what is missing or not healthy, the first by name.
	Message string
}

// Observe compares the declared Deployments with those in the cluster that belong to the ClusterServiceVersion; the
// caller selects them by owner label. causes say, by name, why they are not ready, as far as that is known (package
// readiness).
func Observe(declared []bundle.Deployment, found []appsv1.Deployment, causes map[string]string) Components {
	c := Components{Applied: true, Healthy: true}
	var messages []string
	for _, d := range declared {
		i := slices.IndexFunc(found, func(f appsv1.Deployment) bool { return f.Name == d.Name })
		if i < 0 {
			c.Applied, c.Healthy = false, false
			messages = append(messages, "deployment "+d.Name+" is not there")
			continue
		}
		healthy, exceeded, message := Health(found[i])
		if !healthy {
			c.Healthy = false
			c.DeadlineExceeded = c.DeadlineExceeded || exceeded
			if cause := causes[d.Name]; cause != "" {
				message += ": " + cause
			}
			messages = append(messages, message)
		}
	}
	slices.Sort(messages)
	c.Message = strings.Join(messages, "; ")
	return c
}

// Health is R-CSV-23: the generation is observed, no old replicas remain and Available is true.
// exceeded reports a Deployment that made no progress in its deadline.
func Health(d appsv1.Deployment) (healthy, exceeded bool, message string) {
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse &&
			c.Reason == "ProgressDeadlineExceeded" {
			return false, true, fmt.Sprintf("deployment %s exceeded its progress deadline", d.Name)
		}
	}
	if d.Generation > d.Status.ObservedGeneration {
		return false, false, fmt.Sprintf("waiting for deployment %s: its specification is not yet observed", d.Name)
	}
	if d.Spec.Replicas != nil && d.Status.UpdatedReplicas < *d.Spec.Replicas {
		return false, false, fmt.Sprintf("waiting for deployment %s to become ready: not all replicas are updated",
			d.Name)
	}
	if d.Status.Replicas > d.Status.UpdatedReplicas {
		return false, false, fmt.Sprintf("waiting for deployment %s to become ready: old replicas remain", d.Name)
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue {
			return true, false, ""
		}
	}
	return false, false, fmt.Sprintf("waiting for deployment %s to become ready: it is not available", d.Name)
}
