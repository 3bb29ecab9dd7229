package mirror

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
)

// ConfigName is the name of the one OLMConfig of a cluster.
const ConfigName = "cluster"

// Copies is what a cluster's OLMConfig, or its setting in the hub, says of copies of ClusterServiceVersions.
type Copies string

// Whether copies are made. Here they are off unless somebody asks for them: which operators serve a namespace is
// answered by a query, and a copy of each in each namespace is what floods clusters.
const (
	CopiesUnsaid   Copies = ""         // nothing is said: none
	CopiesDisabled Copies = "Disabled" // disableCopiedCSVs: true (R-CFG-1)
	CopiesEnabled  Copies = "Enabled"  // disableCopiedCSVs: false
)

// CopiesIn reads an OLMConfig; nil is that there is none.
func CopiesIn(config map[string]any) Copies {
	spec, ok := config["spec"].(map[string]any)
	if !ok {
		return CopiesUnsaid
	}
	features, ok := spec["features"].(map[string]any)
	if !ok {
		return CopiesUnsaid
	}
	switch disabled, said := features["disableCopiedCSVs"].(bool); {
	case !said:
		return CopiesUnsaid
	case disabled:
		return CopiesDisabled
	default:
		return CopiesEnabled
	}
}

// CopiesOf is what holds in a cluster: its setting in the hub goes before what its OLMConfig says.
func CopiesOf(setting string, said Copies) Copies {
	switch setting {
	case events.CopiedCSVsOn:
		return CopiesEnabled
	case events.CopiedCSVsOff:
		return CopiesDisabled
	default:
		return said
	}
}

// Config is the OLMConfig that a cluster without one gets: it says what holds. It is the administrator's from then on.
func Config() Object {
	o := newObject(GVKOLMConfig, "", ConfigName, nil, nil)
	o.Body["spec"] = map[string]any{"features": map[string]any{"disableCopiedCSVs": true}}
	return o
}

// ConfigStatus is what the status of an OLMConfig is to be (R-CFG-2). ok is false where it says that already.
func ConfigStatus(config map[string]any, c Copies, now time.Time) (status map[string]any, ok bool) {
	want := map[string]any{
		"type": "DisabledCopiedCSVs", "status": "True", "reason": "CopiedCSVsDisabled",
		"message": "Copied CSVs are disabled",
	}
	if c == CopiesEnabled {
		want["status"], want["reason"], want["message"] = "False", "CopiedCSVsEnabled", "Copied CSVs are enabled"
	}
	for _, have := range conditionsIn(config["status"]) {
		if m, isMap := have.(map[string]any); isMap && m["type"] == want["type"] && m["status"] == want["status"] &&
			m["reason"] == want["reason"] {
			return nil, false
		}
	}
	want["lastTransitionTime"] = stamp(now)
	return map[string]any{"conditions": []any{want}}, true
}

func conditionsIn(part any) []any {
	m, isMap := part.(map[string]any)
	if !isMap {
		return nil
	}
	list, isList := m["conditions"].([]any)
	if !isList {
		return nil
	}
	return list
}

// DisabledEvent tells, in the namespace of an operator that serves all namespaces, that it is copied to none of them
// (R-CFG-2). uid is that of the ClusterServiceVersion that shows it.
func DisabledEvent(op Operator, uid string, now time.Time) Object {
	o := newObject(gvkEvent, op.Namespace, disabledName(op.Name), nil, nil)
	o.OwnedBy = op.Name
	o.Body["type"], o.Body["reason"] = "Warning", "DisabledCopiedCSVs"
	o.Body["message"] = "CSV copying disabled for " + op.Namespace + "/" + op.Name
	o.Body["involvedObject"] = map[string]any{
		"apiVersion": GVKCSV.GroupVersion().String(), "kind": GVKCSV.Kind, "namespace": op.Namespace, "name": op.Name,
		"uid": uid,
	}
	o.Body["firstTimestamp"], o.Body["lastTimestamp"], o.Body["count"] = stamp(now), stamp(now), int64(1)
	o.Body["source"] = map[string]any{"component": "chandler"}
	return o
}

// maxObjectName is the length of an object's name.
const maxObjectName = 253

func disabledName(csv string) string {
	const suffix = ".copies-disabled"
	return csv[:min(len(csv), maxObjectName-len(suffix))] + suffix
}
