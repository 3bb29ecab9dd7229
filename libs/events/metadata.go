package events

import "maps"

// MaxAnnotations bounds the annotations of one intent, keys and values together, as an API server bounds those of an
// object: mirrors carry them.
const MaxAnnotations = 256 << 10

// Metadata are what people note on an intent or a plan for themselves and their tools. It changes nothing that is
// planned or installed, which is why it has events of its own: who decides never reads them.
type Metadata struct {
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations is the commitment of the annotations, "" without any: they may hold anything, so they can be erased.
	Annotations string `json:"annotations,omitempty"`
}

// Equal reports whether both say the same.
func (m Metadata) Equal(o Metadata) bool {
	return m.Annotations == o.Annotations && maps.Equal(m.Labels, o.Labels)
}
