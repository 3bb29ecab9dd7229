package record

import (
	"cmp"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/unknown"
)

// ObserveWindow and ObserveLimit bound the observations recorded of one cluster: a network that comes and
// goes every few seconds is recorded ten times in five minutes and then at the end of the window.
const (
	ObserveWindow = 5 * time.Minute
	ObserveLimit  = 10
	// FactsEvery is how long facts stay as they were recorded: nodes come and go by the minute where something scales
	// them.
	FactsEvery = 10 * time.Minute
)

// opens reports whether a new window begins: the last one is over, or lies in the future because a clock was set back.
func opens(window time.Time, length time.Duration, now time.Time) bool {
	return window.IsZero() || now.Sub(window) >= length || window.Sub(now) > ClockTolerance
}

// Cluster is what was recorded last of a cluster. Its zero value is nothing.
type Cluster struct {
	State             string    `json:"state,omitempty"`
	Reason            string    `json:"reason,omitempty"`
	KubernetesVersion string    `json:"kubernetesVersion,omitempty"`
	HolderEpoch       int64     `json:"holderEpoch,omitempty"`
	TokenAuth         string    `json:"tokenAuth,omitempty"`
	Window            time.Time `json:"window,omitzero"`
	Changes           int       `json:"changes,omitempty"`
	// Withheld is set while the limit keeps a change back.
	Withheld bool `json:"withheld,omitempty"`
	// Facts are those that were recorded last, nil before, and APIs what is served as of then, which
	// installer_api.cluster_apis shows.
	Facts   *events.ClusterFacts `json:"facts,omitempty"`
	APIs    []string             `json:"apis,omitempty"`
	FactsAt time.Time            `json:"factsAt,omitzero"`
	// FactsWithheld is Withheld for facts.
	FactsWithheld bool `json:"factsWithheld,omitempty"`
	// Unknown is what a newer release keeps here.
	Unknown unknown.Fields `json:"-"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Cluster) UnmarshalJSON(data []byte) (err error) {
	type plain Cluster
	s.Unknown, err = unknown.Read(data, (*plain)(s))
	return err
}

// MarshalJSON implements json.Marshaler.
func (s Cluster) MarshalJSON() ([]byte, error) {
	type plain Cluster
	return unknown.Write(plain(s), s.Unknown)
}

// Settled reports whether the same report need not be looked at again as time passes.
func (s Cluster) Settled() bool { return !s.Withheld && !s.FactsWithheld }

// DecideCluster gives the events that a report adds, if any, and the state after them. What a report
// leaves empty because the cluster could not be reached stays as it was recorded. now is the recorder's clock: the
// executor's may stand anywhere.
func DecideCluster(s Cluster, r protocol.ClusterReport, now time.Time) ([]events.Payload, Cluster) {
	observed, s := decideObserved(s, r, now)
	facts, s := decideFacts(s, r, now)
	return append(observed, facts...), s
}

// decideFacts records facts at once where there were none, and later at most once in FactsEvery.
func decideFacts(s Cluster, r protocol.ClusterReport, now time.Time) ([]events.Payload, Cluster) {
	s.FactsWithheld = false
	switch {
	case r.Facts == nil || s.Facts != nil && r.Facts.Equal(*s.Facts):
		return nil, s
	case s.Facts != nil && !opens(s.FactsAt, FactsEvery, now):
		s.FactsWithheld = true
		return nil, s
	}
	s.Facts, s.APIs, s.FactsAt = r.Facts, r.APIs, now
	return []events.Payload{events.ClusterFactsObserved{Facts: *r.Facts}}, s
}

func decideObserved(s Cluster, r protocol.ClusterReport, now time.Time) ([]events.Payload, Cluster) {
	o := events.ClusterObserved{
		State: r.State, Reason: r.Reason, KubernetesVersion: r.KubernetesVersion,
		HolderEpoch: cmp.Or(r.HolderEpoch, s.HolderEpoch),
	}
	if o.KubernetesVersion == "" {
		o.KubernetesVersion = s.KubernetesVersion
	}
	switch r.TokenAuth {
	case "": // not known now
		o.TokenAuth = s.TokenAuth
	case protocol.TokenAuthNone:
	default:
		o.TokenAuth = r.TokenAuth
	}
	same := events.ClusterObserved{
		State: s.State, Reason: s.Reason, KubernetesVersion: s.KubernetesVersion, HolderEpoch: s.HolderEpoch,
		TokenAuth: s.TokenAuth,
	}
	if o == same {
		s.Withheld = false
		return nil, s
	}
	if opens(s.Window, ObserveWindow, now) {
		s.Window, s.Changes = now, 0
	}
	if s.Changes >= ObserveLimit {
		s.Withheld = true
		return nil, s
	}
	s.State, s.Reason, s.KubernetesVersion, s.HolderEpoch, s.TokenAuth = o.State, o.Reason, o.KubernetesVersion,
		o.HolderEpoch, o.TokenAuth
	s.Withheld = false
	s.Changes++
	return []events.Payload{o}, s
}
