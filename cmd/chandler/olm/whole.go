package olm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// alone refuses what stands behind the end of a document and would not be read: a second document behind "...", or text
// behind a JSON object.
func alone(raw []byte) error {
	documents := yamlv3.NewDecoder(bytes.NewReader(raw))
	var n yamlv3.Node
	if err := documents.Decode(&n); err != nil {
		return nil //nolint:nilerr // whoever reads the document says what is wrong with it
	}
	if err := documents.Decode(&n); !errors.Is(err, io.EOF) {
		return errors.New("something stands behind its end: documents are separated by a line of ---")
	}
	return nil
}

// fields are those of an object beside what its kind adds.
var fields = map[string][]string{
	"":         {"apiVersion", "kind", "metadata", "spec", "status"},
	KindSecret: {"data", "stringData", "type", "immutable"},
}

// knownFields refuses fields beside spec and in the metadata that no such object has: what is misplaced by an
// indentation would be passed over as if it had not been said.
func knownFields(raw json.RawMessage, kind string) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(raw, &o); err != nil {
		return err
	}
	for _, field := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(fields[""], field) && !slices.Contains(fields[kind], field) {
			return fmt.Errorf("it has the field %q, which Chandler does not know", field)
		}
	}
	if len(o["metadata"]) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(o["metadata"]))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&metav1.ObjectMeta{}); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		if field, ok := strings.CutPrefix(text, "unknown field "); ok {
			return fmt.Errorf("metadata has the field %s, which Kubernetes does not know", field)
		}
		return fmt.Errorf("metadata: %s", text)
	}
	return nil
}
