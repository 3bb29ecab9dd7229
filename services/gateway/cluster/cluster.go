// Package cluster is the aggregate of one registered cluster, as far as people decide about it: registered, given other
// credentials, configured, labelled, tainted, cordoned, removed. What is seen of the cluster is the installer's to say;
// Evolve passes over it. The package is pure: secrets never come here, only their commitments.
package cluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/joining"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// State is a cluster's intent so far. The zero value is a cluster that was never registered.
type State struct {
	Name       string
	Registered bool
	Access     string   // events.AccessHosted or events.AccessAgent
	Credential string   // commitment of the encrypted kubeconfig; "" with an agent
	Waived     []string // rules that were waived for it
	Labels     map[string]string
	Taints     map[string]string      // keep fleet subscriptions away that do not tolerate them
	Settings   events.ClusterSettings // with their defaults, but for Events: its default follows Mirror
	Cordoned   bool                   // no new plans are made for it
	Joining    joining.State          // of its agent
}

// Command is one of Register, ReplaceCredential, Configure, Remove, IssueJoinToken and DecideAgent.
type Command interface{ clusterCommand() }

// Register gives a cluster to Chandler.
type Register struct {
	Name       string
	Access     string // events.AccessAgent, whose cluster has no credential; "" is events.AccessHosted
	Credential string
	Waived     []string
	Ends       time.Time // of the credential; zero where it does not say
	Labels     map[string]string
	Taints     map[string]string
}

// ReplaceCredential makes Chandler use another kubeconfig.
type ReplaceCredential struct {
	Credential string
	Waived     []string
	Ends       time.Time // of the credential; zero where it does not say
}

// Configure changes how the cluster is treated. What is "" stays as it is.
type Configure struct {
	Settings events.ClusterSettings
	Labels   map[string]*string // value that a label gets, nil takes it away; others stay
	Taints   map[string]*string // as Labels
	Cordoned *bool              // nil: as it is
}

// Remove lets go of the cluster; what is installed there stays.
type Remove struct{}

// IssueJoinToken lets whoever has a token ask to become the agent of the cluster.
type IssueJoinToken struct {
	Token  string // its public key
	Ends   time.Time
	Accept string // events.JoinManual, events.JoinAutomatic
}

// What DecideAgent does.
const (
	AcceptAgent = "Accept"
	RejectAgent = "Reject"
	RevokeAgent = "Revoke"
)

// DecideAgent accepts or rejects who asks to become the agent of the cluster, or revokes all of it.
type DecideAgent struct {
	Action   string // AcceptAgent, RejectAgent, RevokeAgent
	Instance string // who asks, as its caller has seen it; not for RevokeAgent
}

func (Register) clusterCommand()          {}
func (IssueJoinToken) clusterCommand()    {}
func (DecideAgent) clusterCommand()       {}
func (ReplaceCredential) clusterCommand() {}
func (Configure) clusterCommand()         {}
func (Remove) clusterCommand()            {}

// Subject is the natural key of a cluster.
func Subject(name string) string { return name }

// Decide returns the events that the command leads to; none if it changes nothing.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Register:
		return register(s, c)
	case ReplaceCredential:
		if !s.Registered {
			return nil, notFound(s.Name)
		}
		if s.Access == events.AccessAgent {
			return nil, errs.New(errs.Conflict, "cluster %q is served by an agent and has no kubeconfig: remove it, and "+
				"register it with one, to have it hosted", s.Name).At("", "cluster-access")
		}
		if c.Credential == s.Credential {
			return nil, nil
		}
		return []events.Payload{
			events.ClusterCredentialReplaced{Credential: c.Credential, Waived: slices.Clone(c.Waived), Ends: c.Ends},
		}, nil
	case Configure:
		return configure(s, c)
	case Remove:
		if !s.Registered {
			return nil, notFound(s.Name)
		}
		return []events.Payload{events.ClusterRemoved{Name: s.Name}}, nil
	case IssueJoinToken:
		if err := s.forAgents(); err != nil {
			return nil, err
		}
		return []events.Payload{events.ClusterJoinTokenIssued(c)}, nil
	case DecideAgent:
		if err := s.forAgents(); err != nil {
			return nil, err
		}
		return decideAgent(s.Joining, c)
	default:
		return nil, fmt.Errorf("cluster: command %T is not known", c)
	}
}

// forAgents refuses a cluster that no agent serves.
func (s State) forAgents() error {
	switch {
	case !s.Registered:
		return notFound(s.Name)
	case s.Access != events.AccessAgent:
		return errs.New(errs.Conflict, "cluster %q is reached with its kubeconfig, and has no agent", s.Name).
			At("cluster", "cluster-access")
	}
	return nil
}

func decideAgent(now joining.State, c DecideAgent) ([]events.Payload, error) {
	switch c.Action {
	case AcceptAgent:
		return joining.Accept(now, c.Instance)
	case RejectAgent:
		return joining.Reject(now, c.Instance)
	default:
		return joining.Revoke(now), nil
	}
}

func register(s State, c Register) ([]events.Payload, error) {
	if s.Registered {
		return nil, errs.New(errs.AlreadyExists, "cluster %q is registered already", c.Name)
	}
	var v rule.Violations
	v.DNSLabelName("/name", c.Name)
	v.Labels("/labels", c.Labels)
	v.Labels("/taints", c.Taints)
	v.OneOf("/access", c.Access, "", events.AccessHosted, events.AccessAgent)
	if err := v.Err(); err != nil {
		return nil, err
	}
	access := c.Access
	if access == events.AccessHosted {
		access = "" // as events said it before there were agents
	}
	out := []events.Payload{events.ClusterRegistered{
		Name: c.Name, Access: access, Credential: c.Credential, Waived: slices.Clone(c.Waived), Ends: c.Ends,
		Labels: maps.Clone(c.Labels),
	}}
	if len(c.Taints) > 0 {
		out = append(out, events.ClusterTaintsChanged{Taints: maps.Clone(c.Taints)})
	}
	return out, nil
}

func configure(s State, c Configure) ([]events.Payload, error) {
	if !s.Registered {
		return nil, notFound(s.Name)
	}
	var v rule.Violations
	v.OneOf("/mirror", c.Settings.Mirror, "", events.MirrorNone, events.MirrorCSV, events.MirrorAll)
	v.OneOf("/drift", c.Settings.Drift, "", events.DriftCorrect, events.DriftReport)
	v.OneOf("/events", c.Settings.Events, "", events.EventsOn, events.EventsOff)
	v.OneOf("/copiedCSVs", c.Settings.CopiedCSVs, "", events.CopiedCSVsOn, events.CopiedCSVsOff,
		events.CopiedCSVsOLMConfig)
	if why := events.CheckOptional(c.Settings.Optional); why != "" {
		v.Addf("/optional", "optional-kinds", "optional %s", why)
	}
	labels := changed(&v, "labels", s.Labels, c.Labels)
	taints := changed(&v, "taints", s.Taints, c.Taints)
	if err := v.Err(); err != nil {
		return nil, err
	}
	next := events.ClusterSettings{
		Mirror: cmp.Or(c.Settings.Mirror, s.Settings.Mirror), Drift: cmp.Or(c.Settings.Drift, s.Settings.Drift),
		Optional:   cmp.Or(c.Settings.Optional, s.Settings.Optional),
		Events:     cmp.Or(c.Settings.Events, s.Settings.Events),
		CopiedCSVs: cmp.Or(c.Settings.CopiedCSVs, s.Settings.CopiedCSVs),
	}
	var out []events.Payload
	if next != s.Settings {
		out = append(out, events.ClusterConfigured{Settings: next})
	}
	if !maps.Equal(labels, s.Labels) {
		out = append(out, events.ClusterLabelsChanged{Labels: labels})
	}
	if !maps.Equal(taints, s.Taints) {
		out = append(out, events.ClusterTaintsChanged{Taints: taints})
	}
	switch {
	case c.Cordoned == nil || *c.Cordoned == s.Cordoned:
	case *c.Cordoned:
		out = append(out, events.ClusterCordoned{})
	default:
		out = append(out, events.ClusterUncordoned{})
	}
	return out, nil
}

// changed returns labels or taints after a change of some. To take away what is not there changes nothing.
func changed(
	v *rule.Violations, what string, now map[string]string, change map[string]*string,
) map[string]string {
	next := map[string]string{}
	maps.Copy(next, now)
	given := map[string]string{}
	for key, value := range change {
		if value == nil {
			delete(next, key)
			continue
		}
		given[key], next[key] = *value, *value
	}
	v.Labels("/"+what, given)
	if len(next) > rule.MaxLabels {
		v.Addf("/"+what, rule.MaxItems, "the cluster would have %d %s, %d are allowed", len(next), what, rule.MaxLabels)
	}
	return next
}

func notFound(name string) error {
	return errs.New(errs.NotFound, "no cluster %q is registered", name)
}

// Evolve returns the state after an event. An event of another kind of stream is an error.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.ClusterRegistered:
		return State{
			Name: e.Name, Registered: true, Access: cmp.Or(e.Access, events.AccessHosted), Credential: e.Credential,
			Waived: e.Waived, Labels: e.Labels,
			Settings: filled(events.ClusterSettings{}),
		}, nil
	case events.ClusterCredentialReplaced:
		s.Credential, s.Waived = e.Credential, e.Waived
	case events.ClusterCredentialRotated:
		s.Credential = e.Credential
	case events.ClusterConfigured:
		s.Settings = filled(e.Settings)
	case events.ClusterLabelsChanged:
		s.Labels = e.Labels
	case events.ClusterTaintsChanged:
		s.Taints = e.Taints
	case events.ClusterCordoned:
		s.Cordoned = true
	case events.ClusterUncordoned:
		s.Cordoned = false
	case events.ClusterRemoved:
		return State{Name: e.Name}, nil
	case events.ClusterJoinTokenIssued, events.ClusterJoinRequested, events.ClusterJoinAccepted,
		events.ClusterJoinRejected, events.ClusterAgentRevoked, events.ClusterAgentCloned:
		s.Joining = joining.Evolve(s.Joining, p)
	case events.ClusterObserved, events.ClusterFactsObserved:
	default:
		return s, fmt.Errorf("cluster: event %s does not belong in a cluster's stream", p.EventType())
	}
	return s, nil
}

// filled has the defaults that stay the same whatever else is set.
func filled(s events.ClusterSettings) events.ClusterSettings {
	out := s.WithDefaults()
	out.Events = s.Events
	return out
}
