package sharedobject

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/render"
)

// bodyType is the type prefix of the digest of an object's form.
const bodyType = "chandler.shared-body.v1"

// provenanceKeys are prefixes of labels and annotations that name the operator or tool that installed an object: they
// differ between objects that are equal otherwise, and nothing acts on them.
var provenanceKeys = []string{
	"app.kubernetes.io/", "helm.sh/", "meta.helm.sh/", "operators.coreos.com/",
	"kubectl.kubernetes.io/last-applied-configuration",
}

// Normalize returns what of an object is compared with another operator's object of that name: all but
//
//	status, and metadata that the cluster writes
//	labels and annotations of Chandler and OLM about owners and installation
//	labels and annotations that name who installed it (provenanceKeys)
//	the order of rules in roles, which has no meaning
//	the rules of an aggregated role (aggregationRule)
//
// The object is not changed.
func Normalize(object map[string]any) map[string]any {
	out := maps.Clone(object)
	delete(out, "status")
	meta, ok := object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, field := range []string{"labels", "annotations"} {
		if words, is := meta[field].(map[string]any); ok && is {
			words = maps.Clone(words)
			maps.DeleteFunc(words, func(key string, _ any) bool { return render.OwnWord(key) || isProvenance(key) })
			if len(words) > 0 {
				kept[field] = words
			}
		}
	}
	delete(out, "metadata")
	if len(kept) > 0 {
		out["metadata"] = kept
	}
	if rules, ok := out["rules"].([]any); ok && strings.HasPrefix(
		text(out, "apiVersion"), "rbac.authorization.k8s.io/") {
		out["rules"] = sortedRules(rules)
	}
	if out["aggregationRule"] != nil {
		delete(out, "rules")
	}
	return out
}

func isProvenance(key string) bool {
	return slices.ContainsFunc(provenanceKeys, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func text(m map[string]any, key string) string {
	s, ok := m[key].(string)
	if !ok {
		return ""
	}
	return s
}

// sortedRules are rules of rights with their lists, and themselves, in a fixed order.
func sortedRules(rules []any) []any {
	out := make([]any, len(rules))
	for i, r := range rules {
		rule, ok := r.(map[string]any)
		if !ok {
			out[i] = r
			continue
		}
		rule = maps.Clone(rule)
		for key, v := range rule {
			if list, ok := v.([]any); ok {
				rule[key] = sorted(list)
			}
		}
		out[i] = rule
	}
	return sorted(out)
}

// sorted are values without doubles, in the order of their JSON.
func sorted(list []any) []any {
	type entry struct {
		key   string
		value any
	}
	entries := make([]entry, len(list))
	for i, v := range list {
		raw, err := json.Marshal(v)
		if err != nil {
			return list // no value that came as JSON
		}
		entries[i] = entry{string(raw), v}
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	entries = slices.CompactFunc(entries, func(a, b entry) bool { return a.key == b.key })
	out := make([]any, len(entries))
	for i, e := range entries {
		out[i] = e.value
	}
	return out
}

// Digest is the digest of an object's form.
func Digest(object map[string]any) (string, error) {
	d, err := digest.JSON(bodyType, Normalize(object))
	return string(d), err
}
