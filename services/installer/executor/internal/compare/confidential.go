package compare

import (
	"slices"
	"strings"
)

// Values that may be somebody's secret stay in the cluster: of those it is reported only that they differ. What is
// reported lands in tables from which no erasure of a subscription's configuration takes it.

// confidentialFields are fields of a container that a configuration sets, wherever they are.
var confidentialFields = []string{"env", "envFrom", "args", "command"}

// lastApplied is the annotation in which kubectl keeps a whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// confidential reports whether the values of a field are not told, by the kind of its object and its path.
func confidential(kind, path string) bool {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	switch kind {
	case "Secret":
		return true
	case "ConfigMap":
		if parts[0] == "data" || parts[0] == "binaryData" {
			return true
		}
	}
	return slices.ContainsFunc(parts, confidentialKey)
}

func confidentialKey(key string) bool {
	return slices.Contains(confidentialFields, key) || strings.ReplaceAll(key, "~1", "/") == lastApplied
}

// holdsConfidential reports whether such a field is somewhere in a value.
func holdsConfidential(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			if confidentialKey(k) || holdsConfidential(inner) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, holdsConfidential)
	}
	return false
}
