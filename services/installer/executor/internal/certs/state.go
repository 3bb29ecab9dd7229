package certs

import (
	"bytes"
	"fmt"
	"time"
)

// Disruption is how long an API service may be away while the pods behind it run: the API server asks it only now and
// then, and pods that were replaced are not known everywhere at once.
const Disruption = time.Minute

// API is an owned API service as it was found in the cluster.
type API struct {
	Name   string // of the APIService: version.group
	Found  bool
	CA     []byte
	Target string // namespace/service:port
	// Available is what the API server says, with Message, since Since; Since is zero while it has said nothing.
	Available bool
	Message   string
	Since     time.Time
	// ServiceFound is whether the Service before its Deployment exists.
	ServiceFound bool
}

// Want is what an API service should be.
type Want struct {
	CA     []byte
	Target string
	// Running is set while every Deployment of the operator is healthy.
	Running bool
}

// Verdict says what is the matter with an API service. At most one field is set.
type Verdict struct {
	Wrong   string // an object is missing or not as it should be
	Waiting string // not served now, as it is for a while
	Broken  string // not served though its pods run
}

// Judge is the part of R-CSV §6.3 that is about owned API services:
//
//	APIService or Service missing, other CA, other Service      wrong
//	available                                                   well
//	not (yet) asked, or its pods do not run                     waiting
//	unavailable for less than Disruption                        waiting
//	unavailable for longer, though its pods run                 broken
func Judge(now time.Time, have API, want Want) Verdict {
	away := fmt.Sprintf("API service %s is not available: %s", have.Name, have.Message)
	switch {
	case !have.Found:
		return Verdict{Wrong: "APIService " + have.Name + " is not there"}
	case have.Target != want.Target:
		return Verdict{Wrong: fmt.Sprintf("APIService %s leads to %s, not to %s", have.Name, have.Target, want.Target)}
	case !bytes.Equal(have.CA, want.CA):
		return Verdict{Wrong: "APIService " + have.Name + " trusts another CA than the one of its Secret"}
	case !have.ServiceFound:
		return Verdict{Wrong: "the Service behind APIService " + have.Name + " is not there"}
	case have.Available:
		return Verdict{}
	case have.Since.IsZero():
		return Verdict{Waiting: "API service " + have.Name + " was not asked yet"}
	case !want.Running:
		return Verdict{Waiting: away}
	case now.Sub(have.Since) < Disruption:
		return Verdict{Waiting: away}
	}
	return Verdict{Broken: away}
}
