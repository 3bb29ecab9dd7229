package render

import (
	"encoding/json"
	"fmt"
	"reflect"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// config is spec.config of a Subscription as JSON values, by the keys of R-SUB §4.2. The key
// "selector" is accepted and not read, as the sources do.
type config struct {
	values map[string]any
	// annotations is values["annotations"], whose values must be strings.
	annotations map[string]string
}

// typedConfig is the form that the values must have; it is decoded only to check.
type typedConfig struct {
	Env          []corev1.EnvVar              `json:"env"`
	EnvFrom      []corev1.EnvFromSource       `json:"envFrom"`
	Volumes      []corev1.Volume              `json:"volumes"`
	VolumeMounts []corev1.VolumeMount         `json:"volumeMounts"`
	Tolerations  []corev1.Toleration          `json:"tolerations"`
	Resources    *corev1.ResourceRequirements `json:"resources"`
	NodeSelector map[string]string            `json:"nodeSelector"`
	Affinity     *corev1.Affinity             `json:"affinity"`
	Annotations  map[string]string            `json:"annotations"`
}

func parseConfig(raw json.RawMessage) (config, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return config{}, nil
	}
	var typed typedConfig
	var c config
	if err := json.Unmarshal(raw, &typed); err != nil {
		return c, errs.New(errs.Invalid, "subscription config: %v", err).At("/spec/config", "R-SUB-14")
	}
	if err := utiljson.Unmarshal(raw, &c.values); err != nil {
		return c, errs.New(errs.Invalid, "subscription config: %v", err).At("/spec/config", "R-SUB-14")
	}
	c.annotations = typed.Annotations
	return c, nil
}

func (c config) list(key string) []any {
	l, ok := c.values[key].([]any)
	if !ok {
		return nil
	}
	return l
}

// mergePod applies the rows of R-SUB §4.2 that concern the pod.
func (c config) mergePod(pod map[string]any) {
	mergeByName(pod, "volumes", c.list("volumes"))
	appendNew(pod, "tolerations", c.list("tolerations"))
	if v, ok := c.values["nodeSelector"].(map[string]any); ok {
		pod["nodeSelector"] = v
	}
	if v, ok := c.values["affinity"].(map[string]any); ok {
		mergeAffinity(pod, v)
	}
}

// mergeContainer applies the rows that concern each container.
func (c config) mergeContainer(container map[string]any) {
	mergeByName(container, "env", c.list("env"))
	appendNew(container, "envFrom", c.list("envFrom"))
	mergeByName(container, "volumeMounts", c.list("volumeMounts"))
	if v, ok := c.values["resources"].(map[string]any); ok {
		container["resources"] = v
	}
}

// checkMounts refuses a mount of config that names no volume of the pod.
func (c config) checkMounts(deployment string, pod map[string]any) error {
	volumes := map[string]bool{}
	for _, v := range list(pod, "volumes") {
		volumes[nameOf(v)] = true
	}
	for i, m := range c.list("volumeMounts") {
		if !volumes[nameOf(m)] {
			return errs.New(errs.Invalid,
				"subscription config: volumeMounts[%d] names volume %q, which deployment %s does not have",
				i, nameOf(m), deployment).At(fmt.Sprintf("/spec/config/volumeMounts/%d", i), "R-SUB-14")
		}
	}
	return nil
}

// mergeByName replaces entries of the same name in place and appends the others in order.
func mergeByName(m map[string]any, key string, add []any) {
	if len(add) == 0 {
		return
	}
	have := list(m, key)
	for _, a := range add {
		at := -1
		for i, h := range have {
			if nameOf(h) == nameOf(a) {
				at = i
			}
		}
		if at >= 0 {
			have[at] = a
			continue
		}
		have = append(have, a)
	}
	m[key] = have
}

// appendNew appends entries unless an equal one is there.
func appendNew(m map[string]any, key string, add []any) {
	if len(add) == 0 {
		return
	}
	have := list(m, key)
next:
	for _, a := range add {
		for _, h := range have {
			if reflect.DeepEqual(h, a) {
				continue next
			}
		}
		have = append(have, a)
	}
	m[key] = have
}

// mergeAffinity replaces each given part; an empty one erases it, absent ones stay.
func mergeAffinity(pod, given map[string]any) {
	have := child(pod, "affinity")
	for part, v := range given {
		if sub, ok := v.(map[string]any); ok && len(sub) > 0 {
			have[part] = sub
			continue
		}
		if v != nil {
			delete(have, part)
		}
	}
	if len(have) == 0 {
		delete(pod, "affinity")
	}
}

func list(m map[string]any, key string) []any {
	l, ok := m[key].([]any)
	if !ok {
		return nil
	}
	return append([]any(nil), l...)
}

func nameOf(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		return ""
	}
	s, ok := m["name"].(string)
	if !ok {
		return ""
	}
	return s
}
