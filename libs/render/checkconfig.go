package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// CheckConfig returns all that is wrong with spec.config of a Subscription (R-SUB §4.2, R-SUB-14): what cannot be read,
// fields that Kubernetes does not have, and values that its API server would refuse in a Deployment. It is asked before
// an intent is written, so that nothing is accepted that no plan can be made of. Each error names its place below
// /config.
func CheckConfig(raw json.RawMessage) []*errs.Error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return []*errs.Error{errs.New(errs.Invalid, "config must be an object").At("/config", ruleConfig)}
	}
	var c configCheck
	c.env(keys["env"])
	each(&c, "envFrom", keys["envFrom"], func(at string, e corev1.EnvFromSource) {
		c.oneOf(at, e.ConfigMapRef != nil, e.SecretRef != nil)
	})
	each(&c, "volumes", keys["volumes"], c.volume)
	each(&c, "volumeMounts", keys["volumeMounts"], func(at string, m corev1.VolumeMount) {
		c.required(at+"/name", m.Name)
		c.required(at+"/mountPath", m.MountPath)
	})
	each(&c, "tolerations", keys["tolerations"], c.toleration)
	if r := decoded[corev1.ResourceRequirements](&c, "/config/resources", keys["resources"]); r != nil {
		c.resources(*r)
	}
	c.labels("nodeSelector", keys["nodeSelector"], true)
	c.labels("annotations", keys["annotations"], false)
	if s := decoded[metav1.LabelSelector](&c, "/config/selector", keys["selector"]); s != nil {
		c.selector("/config/selector", s)
	}
	if a := decoded[corev1.Affinity](&c, "/config/affinity", keys["affinity"]); a != nil {
		c.affinity(*a)
	}
	if len(c.found) == 0 { // what rendering would say is never less
		if _, err := parseConfig(raw); err != nil {
			c.addf("/config", "%v", err)
		}
	}
	return c.found
}

// AdviseConfig returns what may be wrong with a spec.config that CheckConfig finds nothing in: mounts of volumes that
// it does not define. They may be volumes of the operator's own Deployments, which are not known before a bundle is
// chosen; where they are not, the resolution fails (checkMounts).
func AdviseConfig(raw json.RawMessage) []string {
	var c config
	var err error
	if len(raw) > 0 {
		c, err = parseConfig(raw)
	}
	if err != nil {
		return nil // CheckConfig reports it
	}
	defined := map[string]bool{}
	for _, v := range c.list("volumes") {
		defined[nameOf(v)] = true
	}
	var out []string
	for i, m := range c.list("volumeMounts") {
		if !defined[nameOf(m)] {
			out = append(out, fmt.Sprintf(
				"%s is %q, and config.volumes has no such volume: unless every Deployment of the operator has it, "+
					"nothing can be planned",
				place(fmt.Sprintf("/config/volumeMounts/%d/name", i)), nameOf(m)))
		}
	}
	return out
}

// ruleConfig is the rule that a configuration breaks.
const ruleConfig = "R-SUB-14"

// configCheck collects what is wrong.
type configCheck struct{ found []*errs.Error }

func (c *configCheck) addf(at, format string, args ...any) {
	c.found = append(c.found, errs.New(errs.Invalid, "%s: %s", place(at), fmt.Sprintf(format, args...)).At(
		at, ruleConfig))
}

// place writes a pointer as people do: config.env[0].name.
func place(at string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(strings.TrimPrefix(at, "/"), "/") {
		if _, err := strconv.Atoi(part); err == nil {
			b.WriteString("[" + part + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return b.String()
}

func (c *configCheck) required(at, value string) {
	if value == "" {
		c.addf(at, "must not be empty")
	}
}

func (c *configCheck) all(at string, wrong []string) {
	if len(wrong) > 0 {
		c.addf(at, "%s", strings.Join(wrong, "; "))
	}
}

// oneOf wants exactly one of several.
func (c *configCheck) oneOf(at string, given ...bool) {
	n := 0
	for _, g := range given {
		if g {
			n++
		}
	}
	if n != 1 {
		c.addf(at, "names %d sources, want one", n)
	}
}

// decoded reads a value strictly; nil if there is none, or its error was reported.
func decoded[T any](c *configCheck, at string, raw json.RawMessage) *T {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var v T
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		c.addf(at, "%s", strings.TrimPrefix(err.Error(), "json: "))
		return nil
	}
	var exact T
	if err := utiljson.Unmarshal(raw, &exact); err != nil || !reflect.DeepEqual(v, exact) {
		c.addf(at, "the field %q has other capital letters than Kubernetes gives it", recased(raw, v))
		return nil
	}
	return &v
}

// recased is the first key of a value that its type has in other letters: JSON of Go takes Value for value, Kubernetes
// does not.
func recased(raw json.RawMessage, v any) string {
	written, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	known := keysOf(written)
	for _, key := range slices.Sorted(maps.Keys(keysOf(raw))) {
		if !known[key] {
			return key
		}
	}
	return ""
}

// keysOf are the keys of all objects in a value.
func keysOf(raw json.RawMessage) map[string]bool {
	keys := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, below := range v {
				keys[key] = true
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	var v any
	if json.Unmarshal(raw, &v) == nil {
		walk(v)
	}
	return keys
}

// each reads the elements of a list.
func each[T any](c *configCheck, key string, raw json.RawMessage, check func(at string, v T)) {
	list := decoded[[]json.RawMessage](c, "/config/"+key, raw)
	if list == nil {
		return
	}
	for i, r := range *list {
		at := fmt.Sprintf("/config/%s/%d", key, i)
		if v := decoded[T](c, at, r); v != nil {
			check(at, *v)
		} else if string(r) == "null" {
			c.addf(at, "must not be null")
		}
	}
}

func (c *configCheck) env(raw json.RawMessage) {
	each(c, "env", raw, func(at string, e corev1.EnvVar) {
		c.all(at+"/name", validation.IsRelaxedEnvVarName(e.Name))
		if e.ValueFrom == nil {
			return
		}
		if e.Value != "" {
			c.addf(at, "%s has both value and valueFrom", e.Name)
		}
		c.oneOf(at+"/valueFrom", given(*e.ValueFrom)...)
	})
}

// given says which fields of a union are set.
func given(union any) []bool {
	v := reflect.ValueOf(union)
	out := make([]bool, 0, v.NumField())
	for _, field := range v.Fields() {
		out = append(out, !field.IsZero())
	}
	return out
}

func (c *configCheck) volume(at string, v corev1.Volume) {
	c.all(at+"/name", validation.IsDNS1123Label(v.Name))
	if sources := given(v.VolumeSource); slices.Contains(sources, true) { // without one it is an emptyDir
		c.oneOf(at, sources...)
	}
}

func (c *configCheck) toleration(at string, t corev1.Toleration) {
	if t.Key != "" {
		c.all(at+"/key", validation.IsQualifiedName(t.Key))
	} else if t.Operator != corev1.TolerationOpExists {
		c.addf(at+"/operator", "must be Exists where there is no key")
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		if t.Value != "" {
			c.addf(at+"/value", "must be empty where operator is Exists")
		}
	case corev1.TolerationOpEqual, "":
		c.all(at+"/value", validation.IsValidLabelValue(t.Value))
	default:
		c.addf(at+"/operator", "is %q: want Equal or Exists", t.Operator)
	}
	if t.Effect != "" && t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectPreferNoSchedule &&
		t.Effect != corev1.TaintEffectNoExecute {
		c.addf(at+"/effect", "is %q: want NoSchedule, PreferNoSchedule or NoExecute", t.Effect)
	}
	if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
		c.addf(at+"/effect", "must be NoExecute where there are tolerationSeconds")
	}
}

func (c *configCheck) resources(r corev1.ResourceRequirements) {
	check := func(key string, list corev1.ResourceList) {
		for name, q := range list {
			at := "/config/resources/" + key + "/" + pointer(string(name))
			c.all(at, validation.IsQualifiedName(string(name)))
			if q.Sign() < 0 {
				c.addf(at, "%s must not be negative", q.String())
			}
			if limit, ok := r.Limits[name]; ok && key == "requests" && q.Cmp(limit) > 0 {
				c.addf(at, "%s is more than the limit of %s", q.String(), limit.String())
			}
		}
	}
	check("limits", r.Limits)
	check("requests", r.Requests)
	// maps have no order
	slices.SortStableFunc(c.found, func(a, b *errs.Error) int { return strings.Compare(a.Field, b.Field) })
}

// pointer escapes a key for a JSON pointer.
func pointer(key string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(key) }

// labels checks a map of labels, or of annotations, whose values are free.
func (c *configCheck) labels(key string, raw json.RawMessage, labels bool) {
	m := decoded[map[string]string](c, "/config/"+key, raw)
	if m == nil {
		return
	}
	names := make([]string, 0, len(*m))
	for name := range *m {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		at := "/config/" + key + "/" + pointer(name)
		c.all(at, validation.IsQualifiedName(strings.ToLower(name)))
		if labels {
			c.all(at, validation.IsValidLabelValue((*m)[name]))
		}
	}
}

func (c *configCheck) selector(at string, s *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
		c.addf(at, "%v", err)
	}
}

func (c *configCheck) affinity(a corev1.Affinity) {
	if n := a.NodeAffinity; n != nil {
		if r := n.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
			at := "/config/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms"
			if len(r.NodeSelectorTerms) == 0 {
				c.addf(at, "must not be empty")
			}
			for i, t := range r.NodeSelectorTerms {
				c.nodeTerm(fmt.Sprintf("%s/%d", at, i), t)
			}
		}
		for i, p := range n.PreferredDuringSchedulingIgnoredDuringExecution {
			at := fmt.Sprintf("/config/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution/%d", i)
			c.weight(at, p.Weight)
			c.nodeTerm(at+"/preference", p.Preference)
		}
	}
	if p := a.PodAffinity; p != nil {
		c.podTerms("/config/affinity/podAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
	if p := a.PodAntiAffinity; p != nil {
		c.podTerms("/config/affinity/podAntiAffinity", p.RequiredDuringSchedulingIgnoredDuringExecution,
			p.PreferredDuringSchedulingIgnoredDuringExecution)
	}
}

// maxWeight is the largest weight of a preference in Kubernetes.
const maxWeight = 100

func (c *configCheck) weight(at string, w int32) {
	if w < 1 || w > maxWeight {
		c.addf(at+"/weight", "is %d: want 1 to %d", w, maxWeight)
	}
}

func (c *configCheck) podTerms(at string, required []corev1.PodAffinityTerm,
	preferred []corev1.WeightedPodAffinityTerm,
) {
	for i, t := range required {
		c.podTerm(fmt.Sprintf("%s/requiredDuringSchedulingIgnoredDuringExecution/%d", at, i), t)
	}
	for i, t := range preferred {
		place := fmt.Sprintf("%s/preferredDuringSchedulingIgnoredDuringExecution/%d", at, i)
		c.weight(place, t.Weight)
		c.podTerm(place+"/podAffinityTerm", t.PodAffinityTerm)
	}
}

func (c *configCheck) podTerm(at string, t corev1.PodAffinityTerm) {
	c.required(at+"/topologyKey", t.TopologyKey)
	if t.LabelSelector != nil {
		c.selector(at+"/labelSelector", t.LabelSelector)
	}
	if t.NamespaceSelector != nil {
		c.selector(at+"/namespaceSelector", t.NamespaceSelector)
	}
}

// nodeOperators are how many values each operator of a node's requirement takes at least and at most; -1 is no bound.
var nodeOperators = map[corev1.NodeSelectorOperator][2]int{
	corev1.NodeSelectorOpIn: {1, -1}, corev1.NodeSelectorOpNotIn: {1, -1}, corev1.NodeSelectorOpExists: {0, 0},
	corev1.NodeSelectorOpDoesNotExist: {0, 0}, corev1.NodeSelectorOpGt: {1, 1}, corev1.NodeSelectorOpLt: {1, 1},
}

func (c *configCheck) nodeTerm(at string, t corev1.NodeSelectorTerm) {
	for i, r := range t.MatchExpressions {
		place := fmt.Sprintf("%s/matchExpressions/%d", at, i)
		c.all(place+"/key", validation.IsQualifiedName(r.Key))
		bounds, known := nodeOperators[r.Operator]
		switch {
		case !known:
			c.addf(place+"/operator", "is %q: want In, NotIn, Exists, DoesNotExist, Gt or Lt", r.Operator)
		case len(r.Values) < bounds[0] || bounds[1] >= 0 && len(r.Values) > bounds[1]:
			c.addf(place+"/values", "%s does not take %d values", r.Operator, len(r.Values))
		}
	}
}
