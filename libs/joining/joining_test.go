package joining_test

import (
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/joining"
)

var (
	now   = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	first = joining.Asked{Instance: "a", Key: "UA", ClusterUID: "x", KubernetesVersion: "v1.34.4"}
	other = joining.Asked{Instance: "b", Key: "UB", ClusterUID: "y", KubernetesVersion: "v1.34.4"}
)

func state(history ...events.Payload) (s joining.State) {
	for _, p := range history {
		s = joining.Evolve(s, p)
	}
	return s
}

func issued(key, accept string) events.Payload {
	return events.ClusterJoinTokenIssued{Token: key, Ends: now.Add(time.Hour), Accept: accept}
}

func asked(key string, who joining.Asked, accepted bool) events.Payload {
	return events.ClusterJoinRequested{
		Token: key, Instance: who.Instance, Key: who.Key, ClusterUID: who.ClusterUID,
		KubernetesVersion: who.KubernetesVersion, Accepted: accepted,
	}
}

// A token is good for one, once, until it ends; what was asked may be asked again and leads to nothing new.
func TestRequest(t *testing.T) {
	t.Parallel()
	gone, cloned, later := events.ClusterAgentRevoked{}, events.ClusterAgentCloned{}, issued("T2", events.JoinManual)
	type history = []events.Payload
	manual, automatic := issued("T1", events.JoinManual), issued("T1", events.JoinAutomatic)
	accepted, rejected := events.ClusterJoinAccepted{Instance: "a"}, events.ClusterJoinRejected{Instance: "a"}
	use, usedAtOnce := asked("T1", first, false), asked("T1", first, true)
	another := first
	another.Key = "UB"
	for name, c := range map[string]struct {
		before []events.Payload
		token  string
		who    joining.Asked
		after  time.Duration
		want   events.Payload
		kind   errs.Kind
	}{
		"first":                 {history{manual}, "T1", first, 0, use, ""},
		"at once":               {history{automatic}, "T1", first, 0, usedAtOnce, ""},
		"again":                 {history{manual, use}, "T1", first, 0, nil, ""},
		"again after its end":   {history{manual, use}, "T1", first, 2 * time.Hour, nil, ""},
		"again, accepted":       {history{manual, use, accepted}, "T1", first, 0, nil, ""},
		"again, rejected":       {history{manual, use, rejected}, "T1", first, 0, nil, ""},
		"used by another":       {history{manual, use}, "T1", other, 0, nil, errs.Conflict},
		"used with another key": {history{manual, use}, "T1", another, 0, nil, errs.Conflict},
		"ended":                 {history{manual}, "T1", first, time.Hour, nil, errs.Forbidden},
		"guessed":               {history{manual}, "T2", first, 0, nil, errs.Forbidden},
		"none":                  {nil, "T1", first, 0, nil, errs.Forbidden},
		"replaced":              {history{manual, later}, "T1", first, 0, nil, errs.Forbidden},
		"revoked":               {history{manual, gone}, "T1", first, 0, nil, errs.Forbidden},
		"cloned":                {history{automatic, usedAtOnce, cloned}, "T1", first, 0, nil, errs.Forbidden},
		"removed":               {history{manual, events.ClusterRemoved{}}, "T1", first, 0, nil, errs.Forbidden},
	} {
		got, err := joining.Request(state(c.before...), c.token, c.who, now.Add(c.after))
		var want []events.Payload
		if c.want != nil {
			want = []events.Payload{c.want}
		}
		if !slices.Equal(got, want) || c.kind == "" && err != nil || c.kind != "" && !errs.Is(err, c.kind) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// Who accepts names whom; the agent before stays until then, and a withdrawal leaves nobody.
func TestDecisions(t *testing.T) {
	t.Parallel()
	s := state(issued("T1", events.JoinAutomatic), asked("T1", first, true))
	if s.Phase() != joining.Accepted || s.AgentKey() != "UA" {
		t.Fatalf("%+v", s)
	}
	s = joining.Evolve(joining.Evolve(s, issued("T2", events.JoinManual)), asked("T2", other, false))
	if s.Phase() != joining.Pending || s.AgentKey() != "UA" || s.Joiner() != "T2" {
		t.Fatalf("%+v", s)
	}
	if _, err := joining.Accept(s, "a"); !errs.Is(err, errs.Conflict) {
		t.Errorf("accepts who does not ask: %v", err)
	}
	if _, err := joining.Reject(s, "a"); !errs.Is(err, errs.Conflict) {
		t.Errorf("rejects who does not ask: %v", err)
	}
	got, err := joining.Accept(s, "b")
	if err != nil || len(got) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	after := joining.Evolve(s, got[0])
	if after.AgentKey() != "UB" || after.Phase() != joining.Accepted {
		t.Errorf("%+v", after)
	}
	if again, err := joining.Accept(after, "b"); err != nil || again != nil {
		t.Errorf("accepts twice: %v, %v", again, err)
	}
	if got, err = joining.Reject(s, "b"); err != nil || joining.Evolve(s, got[0]).AgentKey() != "UA" {
		t.Errorf("a rejected request costs the agent its place: %v, %v", got, err)
	}
	gone := state(joining.Revoke(after)...)
	if gone.Phase() != joining.Revoked || gone.AgentKey() != "" || gone.Joiner() != "" || joining.Revoke(gone) != nil {
		t.Errorf("%+v", gone)
	}
	if s.Token.UsedBy != "b" || s.Token.Rejected {
		t.Errorf("a decision changed the state before it: %+v", s.Token)
	}
}
