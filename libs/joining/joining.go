// Package joining is how a program becomes the agent of a cluster, as the cluster's stream tells it: a token is issued,
// somebody asks with it, a person or the token accepts, and all of it can be taken back. The gateway decides for
// people, the installer for who asks. The package is pure.
package joining

import (
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// State is where it stands. The zero value is a cluster that never had a token.
type State struct {
	Token *Token `json:"token,omitempty"`
	Asked *Asked `json:"asked,omitempty"` // and nobody has decided
	Agent *Asked `json:"agent,omitempty"` // who was accepted
	Ended Phase  `json:"ended,omitempty"` // why there is none of them: Rejected, Revoked, Cloned
}

// Token is the last one that was issued.
type Token struct {
	Key       string    `json:"key"` // public
	Ends      time.Time `json:"ends"`
	Automatic bool      `json:"automatic,omitempty"`
	UsedBy    string    `json:"usedBy,omitempty"`   // instance
	Rejected  bool      `json:"rejected,omitempty"` // who has used it
}

// Asked is who asked to become the agent.
type Asked struct {
	Instance          string `json:"instance"`
	Key               string `json:"key"` // public, of its user of NATS
	ClusterUID        string `json:"clusterUID"`
	KubernetesVersion string `json:"kubernetesVersion"`
}

// Phase is a State in one word.
type Phase string

// Phases.
const (
	None     Phase = "None"     // nobody may ask
	Invited  Phase = "Invited"  // there is a token
	Pending  Phase = "Pending"  // somebody has to accept who asks
	Accepted Phase = "Accepted" // there is an agent
	Rejected Phase = "Rejected" // who asked is no agent
	Revoked  Phase = "Revoked"  // a person has taken everything back
	Cloned   Phase = "Cloned"   // the hub has, since two processes had the credentials
)

// Phase is the most that can be said.
func (s State) Phase() Phase {
	switch {
	case s.Asked != nil:
		return Pending
	case s.Agent != nil:
		return Accepted
	case s.Token != nil && s.Token.UsedBy == "":
		return Invited
	case s.Ended != "":
		return s.Ended
	default:
		return None
	}
}

// Joiner is the public key of the token that may ask; "" is none.
func (s State) Joiner() string {
	if s.Token == nil {
		return ""
	}
	return s.Token.Key
}

// AgentKey is the public key of the agent; "" is none.
func (s State) AgentKey() string {
	if s.Agent == nil {
		return ""
	}
	return s.Agent.Key
}

// Request decides on a question with a token. What was asked before is answered as it was, so that it may be asked
// again, also by somebody who repeats what he has heard: it leads to nothing new.
func Request(s State, token string, who Asked, now time.Time) ([]events.Payload, error) {
	switch {
	case s.Token == nil || s.Token.Key != token:
		return nil, errs.New(errs.Forbidden, "this join token is no longer good: another one was issued, or it was "+
			"revoked").At("token", "join-token")
	case s.Token.UsedBy != "":
		same := s.Asked != nil && *s.Asked == who || s.Agent != nil && *s.Agent == who
		if same || s.Token.Rejected && s.Token.UsedBy == who.Instance {
			return nil, nil
		}
		return nil, errs.New(errs.Conflict, "this join token was used already, by instance %s: each is good for one",
			s.Token.UsedBy).At("token", "join-token")
	case !now.Before(s.Token.Ends):
		return nil, errs.New(errs.Forbidden, "this join token was good until %s",
			s.Token.Ends.UTC().Format(time.RFC3339)).At("token", "join-token")
	}
	return []events.Payload{events.ClusterJoinRequested{
		Token: token, Instance: who.Instance, Key: who.Key, ClusterUID: who.ClusterUID,
		KubernetesVersion: who.KubernetesVersion, Accepted: s.Token.Automatic,
	}}, nil
}

// Accept decides that who asked becomes the agent. It names whom its caller has seen.
func Accept(s State, instance string) ([]events.Payload, error) {
	if s.Asked == nil && s.Agent != nil && s.Agent.Instance == instance {
		return nil, nil
	}
	if err := s.asks(instance); err != nil {
		return nil, err
	}
	return []events.Payload{events.ClusterJoinAccepted{Instance: instance}}, nil
}

// Reject decides that who asked does not become the agent.
func Reject(s State, instance string) ([]events.Payload, error) {
	if err := s.asks(instance); err != nil {
		return nil, err
	}
	return []events.Payload{events.ClusterJoinRejected{Instance: instance}}, nil
}

func (s State) asks(instance string) error {
	switch {
	case s.Asked == nil:
		return errs.New(errs.Conflict, "nobody asks to become the agent of this cluster").At("instance", "join-request")
	case s.Asked.Instance != instance:
		return errs.New(errs.Conflict, "instance %s asks to become the agent of this cluster, not %s: look again whom "+
			"you accept", s.Asked.Instance, instance).At("instance", "join-request")
	}
	return nil
}

// Revoke decides that nobody is the agent any more, and that no token is good.
func Revoke(s State) []events.Payload {
	if s.Token == nil && s.Asked == nil && s.Agent == nil {
		return nil
	}
	return []events.Payload{events.ClusterAgentRevoked{}}
}

// Evolve returns the state after an event. Others of a cluster change nothing.
func Evolve(s State, p events.Payload) State {
	switch e := p.(type) {
	case events.ClusterJoinTokenIssued:
		s.Token = &Token{Key: e.Token, Ends: e.Ends, Automatic: e.Accept == events.JoinAutomatic}
		s.Asked = nil // by a token that is no longer good
	case events.ClusterJoinRequested:
		asked := &Asked{
			Instance: e.Instance, Key: e.Key, ClusterUID: e.ClusterUID, KubernetesVersion: e.KubernetesVersion,
		}
		if s.Token != nil {
			used := *s.Token
			used.UsedBy = e.Instance
			s.Token = &used
		}
		if e.Accepted {
			s.Agent, s.Asked, s.Ended = asked, nil, ""
		} else {
			s.Asked = asked
		}
	case events.ClusterJoinAccepted:
		s.Agent, s.Asked, s.Ended = s.Asked, nil, ""
	case events.ClusterJoinRejected:
		s.Asked, s.Ended = nil, Rejected
		if s.Token != nil {
			rejected := *s.Token
			rejected.Rejected = true
			s.Token = &rejected
		}
	case events.ClusterAgentRevoked:
		return State{Ended: Revoked}
	case events.ClusterAgentCloned:
		return State{Ended: Cloned}
	case events.ClusterRemoved:
		return State{}
	}
	return s
}
