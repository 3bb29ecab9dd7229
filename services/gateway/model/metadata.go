package model

import "maps"

// Annotations of OLM that mean something: in the API they are fields of their own.
const (
	// AnnotationTemplate on a CatalogSource is a template of its image (R-CAT-92).
	AnnotationTemplate = "olm.catalogImageTemplate"
	// AnnotationProvidedAPIs on an OperatorGroup with staticProvidedAPIs says what it reserves (R-OG-30).
	AnnotationProvidedAPIs = "olm.providedAPIs"
	// AnnotationExcludeGlobal on an OperatorGroup hides the global catalogs from its namespace where it is "true"
	// (R-RES-5).
	AnnotationExcludeGlobal = "olm.operatorframework.io/exclude-global-namespace-resolution"
)

// annotationLastApplied is where kubectl apply remembers the document that it sent.
const annotationLastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// Metadata are labels and annotations of an intent, as those of the object of Kubernetes that it comes from.
type Metadata struct {
	Labels      map[string]string `json:"labels,omitempty" maxProperties:"64" doc:"Keys and values as in Kubernetes; lists can be chosen by them. Keys by which objects of operators are found in clusters (chandler-fleet.io/…, olm.owner, olm.managed, …) are refused"`
	Annotations map[string]string `json:"annotations,omitempty" doc:"Keys as in Kubernetes, at most 256 KiB of keys and values; in answers about one thing. Kept outside the event log; kubectl.kubernetes.io/last-applied-configuration is not kept"`
}

// Parts of answers that stand beside the event log.
const (
	PartConfig      = "config"
	PartSource      = "source"
	PartAnnotations = "annotations"
	PartReason      = "reason"
)

// Unreadable is a part of an answer that is stored and cannot be opened. The answer is given without it: who writes it
// back as it is takes the part away.
type Unreadable struct {
	Part    string `json:"part" enum:"config,source,annotations,reason"`
	Rule    string `json:"rule" doc:"body-key-set: its key is not set; body-intact: it is damaged; body-sealed: it is in the clear and must not be"`
	KeyID   string `json:"keyId,omitempty" doc:"Of the key that it is sealed by"`
	Message string `json:"message" doc:"What to do"`
}

// Kept is m as it is kept: what kubectl notes for itself is nobody's intent.
func (m Metadata) Kept() Metadata {
	if _, there := m.Annotations[annotationLastApplied]; there {
		m.Annotations = maps.Clone(m.Annotations)
		delete(m.Annotations, annotationLastApplied)
	}
	return m
}

// Same reports whether both are kept as the same.
func (m Metadata) Same(o Metadata) bool {
	return maps.Equal(m.Labels, o.Labels) && maps.Equal(m.Kept().Annotations, o.Kept().Annotations)
}
