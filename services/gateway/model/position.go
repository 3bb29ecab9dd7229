package model

import (
	"strconv"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// StreamVersion names an event by its place in its stream, for a write whose position was not known
// in time: stream@version.
func StreamVersion(s events.StreamID, version int64) string {
	return s.String() + "@" + strconv.FormatInt(version, 10)
}

// Place is what minPosition and after name: a position, or an event by its place in its stream.
type Place struct {
	Position events.Position // zero where Stream is given
	Stream   events.StreamID
	Version  int64
}

// ParsePlace reads both forms of a position.
func ParsePlace(s string) (Place, error) {
	if stream, version, ok := strings.Cut(s, "@"); ok {
		id, err := events.ParseStreamID(stream)
		n, err2 := strconv.ParseInt(version, 10, 64)
		if err == nil && err2 == nil && n > 0 {
			return Place{Stream: id, Version: n}, nil
		}
	} else if pos, err := events.ParsePosition(s); err == nil {
		return Place{Position: pos}, nil
	}
	return Place{}, errs.New(errs.Invalid, "%q is not a position: want epoch-number, such as 1-42, or stream@version",
		s)
}

// Bundles writes planned bundles as the API does.
func Bundles(in []events.PlannedBundle) []PlannedBundle {
	out := make([]PlannedBundle, len(in))
	for i, b := range in {
		out[i] = PlannedBundle(b)
	}
	return out
}

// Tag is the part of an entity tag by which a replacement says what it was decided on: the life of the object's name
// and the version of its stream. An answer to a read adds what tells its own bytes apart.
type Tag struct {
	Incarnation int
	Version     int64
}

// anyTag stands for whatever is there, in If-Match and If-None-Match.
const anyTag = "*"

// String is the text of an entity tag.
func (t Tag) String() string {
	return `"` + strconv.Itoa(t.Incarnation) + "." + strconv.FormatInt(t.Version, 10) + `"`
}

// TagOf is the tag of an object by the id of its stream and its version; "" where it has none.
func TagOf(stream string, version int64) string {
	incarnation, err := strconv.Atoi(stream[strings.LastIndexByte(stream, ':')+1:])
	if err != nil || version == 0 {
		return ""
	}
	return Tag{incarnation, version}.String()
}

// Tag is the entity tag of a subscription.
func (s Subscription) Tag() string { return TagOf(s.Stream, s.Version) }

// Tag is the entity tag of an operator group.
func (g OperatorGroup) Tag() string { return TagOf(g.Stream, g.Version) }

// Tag is the entity tag of a catalog.
func (c Catalog) Tag() string { return TagOf(c.Stream, c.Version) }

// Tag is the entity tag of an approval policy.
func (p ApprovalPolicy) Tag() string { return TagOf(p.Stream, p.Version) }

// Tag is the entity tag of a webhook.
func (w Webhook) Tag() string { return TagOf(w.Stream, w.Version) }

// Tag is the entity tag of a role; "" where it is built in.
func (r AccessRole) Tag() string { return TagOf(r.Stream, r.Version) }

// Tag is the entity tag of a role binding.
func (b RoleBinding) Tag() string { return TagOf(b.Stream, b.Version) }

// Tag is the entity tag of a quota.
func (q Quota) Tag() string { return TagOf(q.Stream, q.Version) }

// Tag is the entity tag of an installed operator.
func (o Operator) Tag() string { return TagOf(o.Stream, o.StreamVersion) }

// Tag is the entity tag of the overrides of an operator, which is that of the operator.
func (o OperatorOverrides) Tag() string { return TagOf(o.Stream, o.Version) }

// Tag is the entity tag of a cluster.
func (c Cluster) Tag() string { return TagOf(c.Stream, c.Version) }

// Match is what a change wants of the object that it is about (RFC 9110, section 13).
type Match struct {
	// Any wants that it is there, None that it is not.
	Any, None bool
	// Tags are those of which it has one. A tag that cannot be read is that of no object.
	Tags []Tag
	// Optional changes need no precondition.
	Optional bool
}

// ParseMatch reads the headers If-Match and If-None-Match; "" is none. Of what is behind the version nothing is read:
// it tells answers apart whose objects have not been changed.
func ParseMatch(match, noneMatch string) Match {
	m := Match{Any: match == anyTag, None: noneMatch == anyTag}
	if match == "" || m.Any {
		return m
	}
	m.Tags = []Tag{}
	for part := range strings.SplitSeq(match, ",") {
		text, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(part), `"`), "-")
		incarnation, version, _ := strings.Cut(text, ".")
		i, err := strconv.Atoi(incarnation)
		v, failed := strconv.ParseInt(version, 10, 64)
		if err == nil && failed == nil { // also not where it is weak: W/"…"
			m.Tags = append(m.Tags, Tag{i, v})
		}
	}
	return m
}

// Given says whether there is a precondition.
func (m Match) Given() bool { return m.Any || m.None || m.Tags != nil }

// Holds says whether an object is what the change was decided on. Its intent is the version of the event that changed
// last what people ask for; what was observed of it since then is nobody's work that could be lost. version is 0 where
// there is no object.
func (m Match) Holds(incarnation int, version, intent int64) bool {
	switch {
	case version == 0:
		return !m.Any && m.Tags == nil
	case m.None:
		return false
	case m.Any || m.Tags == nil:
		return true
	}
	for _, t := range m.Tags {
		if t.Incarnation == incarnation && t.Version >= intent && t.Version <= version {
			return true
		}
	}
	return false
}

// States of an operation. Waiting is for people; what is Succeeded, Failed or Superseded is over.
const (
	OperationRunning    = "Running"
	OperationWaiting    = "WaitingForApproval"
	OperationSucceeded  = "Succeeded"
	OperationFailed     = "Failed"
	OperationSuperseded = "Superseded"
)

// Operation is what becomes of an intent that takes long. It is derived of the event log and of the object, and stored
// nowhere.
type Operation struct {
	ID          string    `json:"id" doc:"Position of the intent, as the answer to the write has it"`
	Type        string    `json:"type" doc:"Of the event of the intent" example:"subscription.created.v1"`
	Object      string    `json:"object" doc:"Path of what it is about"`
	State       string    `json:"state" enum:"Running,WaitingForApproval,Succeeded,Failed,Superseded" doc:"WaitingForApproval: a plan waits for people; Superseded: another intent has taken its place"`
	Over        bool      `json:"over" doc:"Nothing more comes of it by itself. What Failed may go on when what it failed for changes"`
	Reason      string    `json:"reason,omitempty" doc:"Code for programs"`
	Since       time.Time `json:"since" doc:"When it came to be so, as far as it is known"`
	Result      string    `json:"result,omitempty" doc:"Path of what came of it: the install plan"`
	Actor       string    `json:"actor,omitempty" doc:"Who asked"`
	RequestedAt time.Time `json:"requestedAt"`
}

// IsOver says whether a state is the end.
func IsOver(state string) bool {
	return state == OperationSucceeded || state == OperationFailed || state == OperationSuperseded
}
