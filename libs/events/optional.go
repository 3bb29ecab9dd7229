package events

import (
	"fmt"
	"slices"
	"strings"
)

// OptionalMonitoring is the default of ClusterSettings.Optional: the API group of Prometheus' operator.
const OptionalMonitoring = "monitoring.coreos.com"

// OptionalNone is the value of ClusterSettings.Optional for no kind at all.
const OptionalNone = "none"

// maxOptional bounds the entries of ClusterSettings.Optional: a bundle may bring some ten kinds of other projects.
const maxOptional = 50

// IsOptional reports a kind without which operators run: its objects are left out while the cluster does not serve it,
// and written when it does. ClusterSettings.Optional names API groups, or single kinds as GROUP/KIND, with commas
// between.
func (s ClusterSettings) IsOptional(group, kind string) bool {
	return slices.ContainsFunc(strings.Split(s.WithDefaults().Optional, ","), func(entry string) bool {
		g, k, one := strings.Cut(strings.TrimSpace(entry), "/")
		return g != "" && g == group && (!one || k == kind)
	})
}

// CheckOptional says what is wrong with a value of ClusterSettings.Optional, "" for nothing. Built-in groups are never
// optional: a cluster that does not serve them serves no operator.
func CheckOptional(text string) string {
	if text == "" || text == OptionalNone {
		return ""
	}
	entries := strings.Split(text, ",")
	if len(entries) > maxOptional {
		return fmt.Sprintf("has %d entries, more than %d", len(entries), maxOptional)
	}
	for _, entry := range entries {
		group, kind, one := strings.Cut(strings.TrimSpace(entry), "/")
		if !strings.Contains(group, ".") || strings.ContainsAny(group+kind, " \t\n") || one &&
			(kind == "" || strings.Contains(kind, "/")) {
			return fmt.Sprintf("holds %q, which is neither an API group, such as %s, nor GROUP/KIND; %q is for none",
				entry, OptionalMonitoring, OptionalNone)
		}
	}
	return ""
}
