package planreview

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	psa "k8s.io/pod-security-admission/api"

	"github.com/chandler-fleet/chandler/services/gateway/operatorgroup"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// What bundles say of their namespace, by annotations of OLM and OpenShift.
const (
	annotationTemplate   = "operatorframework.io/suggested-namespace-template" // JSON of a Namespace
	annotationMonitoring = "operatorframework.io/cluster-monitoring"           // "true"
	labelMonitoring      = "openshift.io/cluster-monitoring"
)

// Why a label is suggested.
const (
	SuggestedByPods       = "PodSecurity" // the API server refuses pods of the plan in a namespace that enforces less
	SuggestedByMonitoring = "Monitoring"  // the bundle wants to be watched by the monitoring of OpenShift
	SuggestedByTemplate   = "Template"    // the bundle has a template of its namespace
)

// SuggestedLabel is a label that the namespace of a plan is to have by one of its bundles.
type SuggestedLabel struct {
	Key, Value string
	CSV        string
	Reason     string
}

// Suggestions are the labels that the bundles of a plan suggest for their namespace.
type Suggestions struct {
	labels map[string]SuggestedLabel
	// Ignored says in words what bundles suggest that is not among the labels.
	Ignored []string
}

// Labels are sorted by key.
func (s *Suggestions) Labels() []SuggestedLabel {
	out := make([]SuggestedLabel, 0, len(s.labels))
	for _, key := range slices.Sorted(maps.Keys(s.labels)) {
		out = append(out, s.labels[key])
	}
	return out
}

// Add adds what one bundle suggests by its ClusterServiceVersion and by its pods. A level is suggested where pods need
// more than the strictest one, which no cluster refuses.
func (s *Suggestions) Add(csv string, objects []Object) {
	for _, o := range objects {
		if o.GVK.Kind != "ClusterServiceVersion" {
			continue
		}
		said := annotationsOf(o)
		if text := said[annotationTemplate]; text != "" {
			s.template(csv, text)
		}
		if said[annotationMonitoring] == "true" {
			s.label(SuggestedLabel{labelMonitoring, "true", csv, SuggestedByMonitoring})
		}
	}
	// A level that is unknown is told beside the rights.
	if p, err := PodSecurityOf(objects); err == nil && p.Level != string(psa.LevelRestricted) {
		s.label(SuggestedLabel{psa.EnforceLevelLabel, p.Level, csv, SuggestedByPods})
	}
}

func annotationsOf(o Object) map[string]string {
	out := map[string]string{}
	metadata, _ := o.Body["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for key, value := range annotations {
		if text, ok := value.(string); ok {
			out[key] = text
		}
	}
	return out
}

// template adds the labels of a bundle's template of its namespace.
func (s *Suggestions) template(csv, text string) {
	var namespace struct {
		Metadata struct {
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal([]byte(text), &namespace); err != nil {
		s.ignore("%s: annotation %s is no JSON of a Namespace: %v", csv, annotationTemplate, err)
		return
	}
	m := namespace.Metadata
	if len(m.Labels) > rule.MaxLabels {
		s.ignore("%s: annotation %s has %d labels, %d are read", csv, annotationTemplate, len(m.Labels),
			rule.MaxLabels)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		s.label(SuggestedLabel{key, m.Labels[key], csv, SuggestedByTemplate})
	}
	if len(m.Annotations) > 0 {
		s.ignore("%s: annotations %s of its template: set them as namespaceAnnotations of the operator group", csv,
			strings.Join(slices.Sorted(maps.Keys(m.Annotations)), ", "))
	}
}

// label adds one label. Of two levels the weaker holds, since all pods of the plan have to run; of two other values the
// first does, and the second is told.
func (s *Suggestions) label(l SuggestedLabel) {
	if err := operatorgroup.CheckNamespaceLabels(map[string]string{l.Key: l.Value}); err != nil {
		s.ignore("%s: label %s=%s: %v", l.CSV, l.Key, l.Value, err)
		return
	}
	level := psa.LevelPrivileged
	if l.Key == psa.EnforceLevelLabel {
		var err error
		if level, err = psa.ParseLevel(l.Value); err != nil {
			s.ignore("%s: label %s=%s: %v", l.CSV, l.Key, l.Value, err)
			return
		}
	}
	has, ok := s.labels[l.Key]
	switch {
	case !ok:
	case l.Key == psa.EnforceLevelLabel:
		if psa.CompareLevels(level, psa.Level(has.Value)) >= 0 {
			return
		}
	case has.Value == l.Value:
		return
	default:
		s.ignore("%s: label %s=%s: %s suggests %q", l.CSV, l.Key, l.Value, has.CSV, has.Value)
		return
	}
	if s.labels == nil {
		s.labels = map[string]SuggestedLabel{}
	}
	s.labels[l.Key] = l
}

// maxIgnored bounds one sentence: a bundle may have anything in its annotations.
const maxIgnored = 1000

func (s *Suggestions) ignore(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(text) > maxIgnored {
		text = strings.ToValidUTF8(text[:maxIgnored], "") + "…"
	}
	s.Ignored = append(s.Ignored, text)
}
