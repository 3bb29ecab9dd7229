package render

import (
	"encoding/json"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// revisionHistoryLimit keeps one old ReplicaSet (R-CSV-21).
const revisionHistoryLimit = int64(1)

// deployments renders the strategy's Deployments with the subscription's config (R-CSV-20, R-SUB-14).
func (r *renderer) deployments() error {
	if s := r.csv.Spec.Install.Strategy; s != bundle.StrategyDeployment {
		return errs.New(errs.Invalid, "%s: install strategy %q is unknown, want %q", r.csv.Name, s,
			bundle.StrategyDeployment).
			At("/spec/install/strategy", "R-CSV-2")
	}
	seen := map[string]bundle.Deployment{}
	for i, d := range r.csv.Spec.Install.Spec.Deployments {
		if before, ok := seen[d.Name]; ok {
			if reflect.DeepEqual(before, d) { // the manifest is canonical, so equal ones are equal bytes
				continue
			}
			return errs.New(errs.Invalid,
				"%s: deployment %s is declared twice, differently: OLM would write one over the other for ever",
				r.csv.Name, d.Name).
				At(fmt.Sprintf("/spec/install/spec/deployments/%d", i), "R-CSV-20")
		}
		seen[d.Name] = d
		if err := r.deployment(d); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) deployment(d bundle.Deployment) error {
	if _, err := d.Typed(); err != nil {
		return errs.Wrap(errs.Invalid, err, "%s", r.csv.Name)
	}
	spec, err := object(d.Spec)
	if err != nil {
		return err
	}
	prune(spec)
	spec["revisionHistoryLimit"] = revisionHistoryLimit
	template := child(spec, "template")
	if err := r.pod(d.Name, child(template, "spec")); err != nil {
		return err
	}
	r.templateAnnotations(template)
	raw, err := json.Marshal(spec)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode deployment %s", d.Name)
	}
	body := map[string]any{"spec": spec}
	meta := child(body, "metadata")
	set(meta, "labels", d.Labels)
	setDefault(meta, "annotations", r.config.annotations)
	disown(meta)
	set(meta, "labels", r.ownerLabels(), map[string]string{LabelDeploymentHash: hash(specHashLength, string(raw))})
	r.add(gvkDeployment, r.in.Namespace, d.Name, body)
	return nil
}

// pod merges config into the pod and its containers. Init containers stay as they are (R-SUB §4.2).
func (r *renderer) pod(deployment string, pod map[string]any) error {
	r.config.mergePod(pod)
	condition := []any{map[string]any{"name": EnvOperatorCondition, "value": r.csv.Name}}
	containers := list(pod, "containers")
	for _, c := range containers {
		container, ok := c.(map[string]any)
		if !ok {
			continue
		}
		r.config.mergeContainer(container)
		mergeByName(container, "env", condition)
		unique(container)
	}
	for _, c := range list(pod, "initContainers") {
		if container, ok := c.(map[string]any); ok {
			unique(container)
		}
	}
	r.mount(deployment, pod)
	dedupe(pod, "imagePullSecrets", nameOf)
	return r.config.checkMounts(deployment, pod)
}

// templateAnnotations projects the CSV's annotations into the pod template (R-SUB-11); the template's own win.
func (r *renderer) templateAnnotations(template map[string]any) {
	meta := child(template, "metadata")
	setDefault(meta, "annotations", r.csv.Annotations)
	setDefault(meta, "annotations", r.config.annotations)
}

// unique makes a container fit for server-side apply, which refuses lists that hold a key twice
// where an update takes them. What is kept is what takes effect: the last of equal variables.
func unique(container map[string]any) {
	dedupe(container, "env", nameOf)
	dedupe(container, "ports", func(v any) string {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		protocol, ok := m["protocol"].(string)
		if !ok {
			protocol = "TCP"
		}
		return fmt.Sprintf("%v/%s", m["containerPort"], protocol)
	})
}

// dedupe keeps the last of the entries with one key, at the place of the first.
func dedupe(m map[string]any, key string, id func(any) string) {
	have, ok := m[key].([]any)
	if !ok {
		return
	}
	at := map[string]int{}
	out := make([]any, 0, len(have))
	for _, h := range have {
		if i, ok := at[id(h)]; ok {
			out[i] = h
			continue
		}
		at[id(h)] = len(out)
		out = append(out, h)
	}
	m[key] = out
}

// prune removes nulls, which generators leave (creationTimestamp, resources) and which say nothing.
func prune(v any) {
	switch t := v.(type) {
	case map[string]any:
		for k, c := range t {
			if c == nil {
				delete(t, k)
				continue
			}
			prune(c)
		}
	case []any:
		for _, c := range t {
			prune(c)
		}
	}
}

// Clone returns a deep copy of the object, for a caller that adds to its body.
func (o Object) Clone() Object {
	o.Body = runtime.DeepCopyJSON(o.Body)
	return o
}
