package record

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// The bounds of what is taken from a report. A cluster may be hostile, or an operator in it: whatever these say, the facts
// beside it are recorded.
const (
	// maxDepth bounds how deep a report is nested. The differences of objects, the deepest part of a report of ours, are
	// cut at 256 bytes each; Postgres ends a statement that nests a few thousand deep.
	maxDepth = 512
	// MaxName bounds a name: Kubernetes has none longer.
	MaxName = 253
	// maxCode bounds reasons, versions and digests, which stand in events: a digest has 71 bytes, and Kubernetes itself
	// bounds the reason of a condition at 1024.
	maxCode = 1024
	// maxHistory bounds the transitions of one operator in one report; executors keep 20.
	maxHistory = 100
	// maxUnready bounds the Deployments of one operator that are told as not ready; executors tell of ten.
	maxUnready = 20
	// maxConditions bounds the conditions of one operator; executors tell of one.
	maxConditions = 20
	// maxListed bounds the namespaces and APIs of one operator group, so that they fit into an event.
	maxListed = 5000
	// maxGroupBytes bounds what these names have together: half of what an event may have.
	maxGroupBytes = 256 << 10
)

const replacement = `\ufffd`

// Readable returns the JSON of a report without what Postgres refuses, and with that the whole report: bytes that are no
// UTF-8, NUL, and halves of characters. Each becomes U+FFFD. JSON that is nested too deep is errs.Invalid.
func Readable(data []byte) ([]byte, error) {
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

// IsName reports text that can be the name of an object: of what bears another one nothing is recorded, since names are
// parts of the log's subjects.
func IsName(s string) bool {
	return s != "" && len(s) <= MaxName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == '/' || r == utf8.RuneError })
}

// Tame returns a report whose parts fit into events, and says what is left out. Its lists are copied where they change.
func Tame(r protocol.ScopeReport, now time.Time) (protocol.ScopeReport, error) {
	r.Reported = NotAhead(r.Reported, now)
	var refused []string
	r.CSVs = slices.DeleteFunc(slices.Clone(r.CSVs), func(c protocol.CSVReport) bool {
		bad := !IsName(c.Name) || len(c.UID) > MaxName
		if bad {
			refused = append(refused, strconv.Quote(Code(c.Name)))
		}
		return bad
	})
	for i := range r.CSVs {
		tameCSV(&r.CSVs[i])
	}
	r.Plans = slices.Clone(r.Plans)
	for i := range r.Plans {
		p := &r.Plans[i]
		p.Class, p.Reason, p.TraceParent = Code(p.Class), Code(p.Reason), Code(p.TraceParent)
		p.Steps, p.Done, p.Warnings = count(p.Steps), count(p.Done), count(p.Warnings)
	}
	r.Removals = slices.Clone(r.Removals)
	for i := range r.Removals {
		x := &r.Removals[i]
		x.Class, x.Reason, x.Cut = Code(x.Class), Code(x.Reason), count(x.Cut)
	}
	if r.Group != nil && !tameGroup(r.Group) {
		refused = append(refused, "operator group "+strconv.Quote(Code(r.Group.Name)))
		r.Group = nil
	}
	if len(refused) > 0 {
		return r, errs.New(errs.Invalid, "names that no object bears, or lists of more than %d names: %.300s", maxListed, strings.Join(refused, ", "))
	}
	return r, nil
}

func tameCSV(c *protocol.CSVReport) {
	for _, code := range []*string{&c.Package, &c.Version, &c.Content, &c.Plan, &c.RemovedReason, &c.Removal, &c.TraceParent} {
		*code = Code(*code)
	}
	c.Dropped, c.Cut.Drifts = count(c.Dropped), count(c.Cut.Drifts)
	if n := len(c.History) - maxHistory; n > 0 {
		c.History = c.History[n:]
		c.Dropped += n
	}
	c.History = slices.Clone(c.History)
	for i := range c.History {
		t := &c.History[i]
		t.Phase, t.Reason = Code(t.Phase), Code(t.Reason)
	}
	c.NotReady = slices.DeleteFunc(slices.Clone(c.NotReady), func(n protocol.NotReady) bool { return !IsName(n.Deployment) })
	c.NotReady = c.NotReady[:min(len(c.NotReady), maxUnready)]
	for i := range c.NotReady {
		n := &c.NotReady[i]
		n.Reason, n.Webhook, n.Owner = Code(n.Reason), Code(n.Webhook), Code(n.Owner)
	}
	c.Conditions = slices.Clone(c.Conditions[:min(len(c.Conditions), maxConditions)])
	for i := range c.Conditions {
		o := &c.Conditions[i]
		o.Type, o.Reason = Code(o.Type), Code(o.Reason)
		if o.Status != "True" && o.Status != "False" {
			o.Status = "Unknown"
		}
	}
	if c.Condition != nil {
		said := *c.Condition
		said.Reason = Code(said.Reason)
		c.Condition = &said
	}
}

// tameGroup reports whether what is said of a group fits into an event.
func tameGroup(g *protocol.GroupReport) bool {
	if !IsName(g.Name) || len(g.Targets) > maxListed || len(g.ProvidedAPIs) > maxListed || len(g.Conditions) > maxListed {
		return false
	}
	size := 0
	for _, list := range [][]string{g.Targets, g.ProvidedAPIs} {
		for _, s := range list {
			size += len(s)
		}
	}
	for i := range g.Conditions {
		g.Conditions[i].Type, g.Conditions[i].Reason = Code(g.Conditions[i].Type), Code(g.Conditions[i].Reason)
		size += len(g.Conditions[i].Type)
	}
	return size <= maxGroupBytes
}

// TameCluster is Tame for a report about a whole cluster.
func TameCluster(r protocol.ClusterReport, now time.Time) protocol.ClusterReport {
	r.Reported = NotAhead(r.Reported, now)
	r.State, r.Reason, r.KubernetesVersion, r.TokenAuth = Code(r.State), Code(r.Reason), Code(r.KubernetesVersion), Code(r.TokenAuth)
	return r
}

// NotAhead is a time that a cluster tells, or now where that is ahead: what is bounded by time must not be bounded by a
// clock that whoever is bounded may set. It keeps the order: of two reports the later one stays the later one.
func NotAhead(told, now time.Time) time.Time {
	if told.After(now) {
		return now
	}
	return told
}

// count bounds a number of things, so that sums with it stay numbers that Postgres holds.
func count(n int) int { return max(0, min(n, math.MaxInt32)) }

// Code bounds a code.
func Code(s string) string {
	if len(s) <= maxCode {
		return s
	}
	return strings.ToValidUTF8(s[:maxCode], "")
}
