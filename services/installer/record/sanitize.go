package record

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// The limits on what is taken from a report. A cluster, or an operator in it, may be hostile: whatever is over a limit
// is left out, and the rest of the report is recorded.
const (
	// maxDepth bounds how deep a report is nested. The differences of objects, the deepest part of a report of ours,
	// are cut at 256 bytes each; Postgres ends a statement that nests a few thousand deep.
	maxDepth = 512
	// MaxName bounds a name: Kubernetes has none longer.
	MaxName = 253
	// maxCodeBytes bounds reasons, versions and digests, which stand in events: a digest has 71 bytes, and Kubernetes
	// itself bounds the reason of a condition at 1024.
	maxCodeBytes = 1024
	// maxHistory bounds the transitions of one operator in one report; executors keep 20.
	maxHistory = 100
	// maxNotReady bounds the Deployments of one operator that are reported as not ready; executors report ten.
	maxNotReady = 20
	// maxConditions bounds the conditions of one operator; executors report one.
	maxConditions = 20
	// maxListed bounds the namespaces and APIs of one operator group, so that they fit into an event.
	maxListed = 5000
	// maxGroupBytes bounds what these names have together: half of what an event may have.
	maxGroupBytes = 256 << 10
)

const replacement = `\ufffd`

// SanitizeJSON replaces in the JSON of a report what would make Postgres refuse the whole report: invalid UTF-8, NUL,
// and unpaired surrogates. Each becomes U+FFFD. JSON that is nested too deep is errs.Invalid.
func SanitizeJSON(data []byte) ([]byte, error) {
	data = bytes.ToValidUTF8(data, []byte(string(utf8.RuneError)))
	var out bytes.Buffer // data up to kept, as it may be stored
	kept, depth, within := 0, 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			within = !within
		case within && c == '\\':
			n, fit := escape(data[i:])
			if !fit {
				out.Write(data[kept:i])
				out.WriteString(replacement)
				kept = i + n
			}
			i += n - 1
		case within:
		case c == '{' || c == '[':
			depth++
			if depth > maxDepth {
				return nil, errs.New(errs.Invalid, "the report is nested deeper than %d", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	if kept == 0 {
		return data, nil
	}
	out.Write(data[kept:])
	return out.Bytes(), nil
}

// escape reads the escape at the beginning of data: how many bytes it has, and whether Postgres takes it.
func escape(data []byte) (n int, fit bool) {
	first, ok := hex(data)
	switch {
	case !ok:
		return min(2, len(data)), true
	case first == 0:
		return 6, false
	case !utf16.IsSurrogate(first):
		return 6, true
	}
	second, _ := hex(data[6:])
	if utf16.DecodeRune(first, second) == utf8.RuneError {
		return 6, false
	}
	return 12, true
}

// hex reads \uXXXX.
func hex(data []byte) (rune, bool) {
	if len(data) < 6 || data[0] != '\\' || data[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(data[2:6]), 16, 16)
	return rune(n), err == nil
}

// IsObjectName reports whether text can be the name of an object. Names are parts of the log's subjects, so nothing is
// recorded of an object with any other name.
func IsObjectName(s string) bool {
	return s != "" && len(s) <= MaxName && !strings.ContainsFunc(
		s, func(r rune) bool { return r <= ' ' || r == '/' || r == utf8.RuneError })
}

// Sanitize returns a report whose parts fit into events, and an error that names what it left out. Lists are copied
// before they are changed.
func Sanitize(r protocol.ScopeReport, now time.Time) (protocol.ScopeReport, error) {
	r.Reported = ClampToNow(r.Reported, now)
	var refused []string
	r.CSVs = slices.DeleteFunc(slices.Clone(r.CSVs), func(c protocol.CSVReport) bool {
		bad := !IsObjectName(c.Name) || len(c.UID) > MaxName
		if bad {
			refused = append(refused, strconv.Quote(truncate(c.Name)))
		}
		return bad
	})
	for i := range r.CSVs {
		sanitizeCSV(&r.CSVs[i], now)
	}
	r.Plans = slices.Clone(r.Plans)
	for i := range r.Plans {
		p := &r.Plans[i]
		p.Class, p.Reason, p.TraceParent = truncate(p.Class), truncate(p.Reason), truncate(p.TraceParent)
		p.Steps, p.Done, p.Warnings = clampCount(p.Steps), clampCount(p.Done), clampCount(p.Warnings)
	}
	r.Removals = slices.Clone(r.Removals)
	for i := range r.Removals {
		x := &r.Removals[i]
		x.Class, x.Reason, x.Cut = truncate(x.Class), truncate(x.Reason), clampCount(x.Cut)
	}
	if r.Group != nil && !sanitizeGroup(r.Group) {
		refused = append(refused, "operator group "+strconv.Quote(truncate(r.Group.Name)))
		r.Group = nil
	}
	if len(refused) > 0 {
		return r, errs.New(errs.Invalid, "names that no object bears, or lists of more than %d names: %.300s",
			maxListed, strings.Join(refused, ", "))
	}
	return r, nil
}

func sanitizeCSV(c *protocol.CSVReport, now time.Time) {
	for _, code := range []*string{
		&c.Package, &c.Version, &c.Content, &c.Plan, &c.RemovedReason, &c.Removal,
		&c.TraceParent,
	} {
		*code = truncate(*code)
	}
	c.Dropped, c.Cut.Drifts = clampCount(c.Dropped), clampCount(c.Cut.Drifts)
	if n := len(c.History) - maxHistory; n > 0 {
		c.History = c.History[n:]
		c.Dropped += n
	}
	c.History = slices.Clone(c.History)
	for i := range c.History {
		t := &c.History[i]
		t.Phase, t.Reason = truncate(t.Phase), truncate(t.Reason)
		t.Time = ClampToNow(t.Time, now) // the window of the limit on phases must not lie in the future
	}
	c.NotReady = slices.DeleteFunc(slices.Clone(c.NotReady),
		func(n protocol.NotReady) bool { return !IsObjectName(n.Deployment) })
	c.NotReady = c.NotReady[:min(len(c.NotReady), maxNotReady)]
	for i := range c.NotReady {
		n := &c.NotReady[i]
		n.Reason, n.Webhook, n.Owner = truncate(n.Reason), truncate(n.Webhook), truncate(n.Owner)
	}
	c.Conditions = slices.Clone(c.Conditions[:min(len(c.Conditions), maxConditions)])
	for i := range c.Conditions {
		o := &c.Conditions[i]
		o.Type, o.Reason = truncate(o.Type), truncate(o.Reason)
		if o.Status != "True" && o.Status != "False" {
			o.Status = "Unknown"
		}
	}
	if c.Condition != nil {
		condition := *c.Condition
		condition.Reason = truncate(condition.Reason)
		c.Condition = &condition
	}
}

// sanitizeGroup truncates the codes of a group, and reports whether the group fits into an event.
func sanitizeGroup(g *protocol.GroupReport) bool {
	if !IsObjectName(g.Name) || len(g.Targets) > maxListed || len(g.ProvidedAPIs) > maxListed ||
		len(g.Conditions) > maxListed {
		return false
	}
	size := 0
	for _, list := range [][]string{g.Targets, g.ProvidedAPIs} {
		for _, s := range list {
			size += len(s)
		}
	}
	for i := range g.Conditions {
		g.Conditions[i].Type, g.Conditions[i].Reason = truncate(g.Conditions[i].Type), truncate(g.Conditions[i].Reason)
		size += len(g.Conditions[i].Type)
	}
	return size <= maxGroupBytes
}

// SanitizeCluster is Sanitize for a report about a whole cluster.
func SanitizeCluster(r protocol.ClusterReport, now time.Time) protocol.ClusterReport {
	r.Reported = ClampToNow(r.Reported, now)
	r.State, r.Reason, r.KubernetesVersion, r.TokenAuth = truncate(r.State), truncate(r.Reason),
		truncate(r.KubernetesVersion), truncate(r.TokenAuth)
	r.Facts, r.APIs = sanitizeFacts(r.Facts, r.APIs)
	return r
}

const (
	// maxAPIs bounds the API groups of a cluster, each with a version: clusters with a hundred operators have 300.
	maxAPIs = 1000
	// maxArchitectures bounds the architectures of nodes: Kubernetes is built for five.
	maxArchitectures = 16
	// apisType is the type prefix of the digest of the APIs that a cluster serves.
	apisType = "chandler.cluster-apis.v1"
)

// sanitizeFacts bounds what a cluster says of itself, and makes the digest of its APIs: that is not the cluster's to
// say.
func sanitizeFacts(f *events.ClusterFacts, apis []string) (*events.ClusterFacts, []string) {
	if f == nil {
		return nil, nil
	}
	for i := range apis {
		apis[i] = truncate(apis[i])
	}
	apis = slices.Sorted(slices.Values(apis))
	apis = slices.Compact(apis)
	apis = apis[:min(len(apis), maxAPIs)]
	out := events.ClusterFacts{
		ClusterUID: truncate(f.ClusterUID), Distribution: truncate(f.Distribution), Nodes: max(0, f.Nodes),
		CPUCores: max(0, f.CPUCores), MemoryGiB: max(0, f.MemoryGiB), APICount: int64(len(apis)),
	}
	for _, a := range slices.Sorted(maps.Keys(f.Architectures))[:min(len(f.Architectures), maxArchitectures)] {
		if out.Architectures == nil {
			out.Architectures = map[string]int64{}
		}
		out.Architectures[truncate(a)] = max(0, f.Architectures[a])
	}
	for _, part := range []string{events.FactClusterUID, events.FactNodes, events.FactAPIs} {
		if why := f.Missing[part]; why != "" {
			if out.Missing == nil {
				out.Missing = map[string]string{}
			}
			out.Missing[part] = truncate(why)
		}
	}
	if len(apis) > 0 {
		if d, err := digest.JSON(apisType, apis); err == nil { // strings have one always
			out.APIs = string(d)
		}
	}
	return &out, apis
}

// ClampToNow returns the time of a report, or now where that is in the future: a rate limit must not depend on a clock
// that the cluster may set.
func ClampToNow(reported, now time.Time) time.Time {
	if reported.After(now) {
		return now
	}
	return reported
}

// clampCount keeps a count within what Postgres' integers hold, also when counts are added.
func clampCount(n int) int { return max(0, min(n, math.MaxInt32)) }

// truncate cuts a code at maxCodeBytes.
func truncate(s string) string {
	if len(s) <= maxCodeBytes {
		return s
	}
	return strings.ToValidUTF8(s[:maxCodeBytes], "")
}
