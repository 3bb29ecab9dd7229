package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/platform"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

func (s *session) reportCluster() {
	// What was heard says as much as what was acted on, and the hub's proof goes with both.
	acted := s.positions.highest()
	seen := acted
	if heard, proof := s.inbox.Highest(); seen.Less(heard) {
		seen = kube.Seen{Position: heard, Proof: proof}
	}
	s.mu.Lock()
	tokenAuth, found := s.tokenAuth, s.platform
	s.mu.Unlock()
	r := protocol.ClusterReport{
		Tenant: s.cfg.Tenant, Cluster: s.cfg.Cluster, ClusterID: s.cfg.ClusterID,
		State: events.ObservedConnected, KubernetesVersion: s.version, HolderEpoch: s.client.Number,
		Seen: seen.Position, Proof: seen.Proof, Acted: acted.Position, ActedProof: acted.Proof, TokenAuth: tokenAuth,
	}
	if found != nil {
		r.Facts, r.APIs = &found.Facts, found.APIs
	}
	r.Reason, r.Message = s.trouble()
	s.reporter.Cluster(r)
}

const (
	// degradedAfter is how long the work on a namespace ends in errors before it is said of the cluster: what passes by
	// itself is in the reports of the namespace only.
	degradedAfter = time.Minute
	// maxFailingNamed bounds the namespaces that the message names.
	maxFailingNamed = 5
)

// trouble is what is wrong with a cluster that is held: a code, and a sentence; "" where nothing is.
func (s *session) trouble() (reason, message string) {
	if message = s.olmMessage(); message != "" {
		return failure.ReasonOLM, message
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	now := s.cfg.Now()
	for ns, since := range s.failing {
		if now.Sub(since) >= degradedAfter {
			names = append(names, ns)
		}
	}
	if len(names) == 0 {
		return "", ""
	}
	slices.Sort(names)
	more := ""
	if n := len(names) - maxFailingNamed; n > 0 {
		names, more = names[:maxFailingNamed], fmt.Sprintf(" and %d more", n)
	}
	return failure.ReasonWorkFailing, "the work on these namespaces ends in errors again and again, and is tried again: " +
		strings.Join(names, ", ") + more
}

// tokensPause is the wait after the mode of cloud tokens could not be found out: it holds up nothing.
const tokensPause = time.Minute

// watchTokens finds out which mode of cloud tokens the cluster is in, and again after each hint (R-TOK-1).
func (s *session) watchTokens(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := clusterconfig.TokenAuth(ctx, s.client)
		if err != nil {
			s.cfg.Log.DebugContext(ctx, "the mode of cloud tokens is not known", "error", err)
			pace.Sleep(ctx, tokensPause)
			continue
		}
		s.mu.Lock()
		changed := s.tokenAuth != found
		s.tokenAuth = found
		s.mu.Unlock()
		if changed {
			s.reportCluster()
		}
		select {
		case <-ctx.Done():
		case <-s.tokens:
		}
	}
}

const (
	// platformEvery is how often it is looked what a cluster is made of: a list of all nodes, in pages.
	platformEvery = 15 * time.Minute
	// platformPause is the wait after that could not be read: it holds up nothing.
	platformPause = time.Minute
)

// followPlatform finds out what the cluster is made of, and again and again.
func (s *session) followPlatform(ctx context.Context) {
	for ctx.Err() == nil {
		found, err := platform.Read(ctx, s.client, s.version, func() ([]string, error) { return kube.APIs(s.client) })
		if err != nil {
			s.cfg.Log.DebugContext(ctx, "what the cluster is made of is not known", "error", err)
			pace.Sleep(ctx, platformPause)
			continue
		}
		slices.Sort(found.APIs)
		s.mu.Lock()
		changed := s.platform == nil || !s.platform.Facts.Equal(found.Facts) ||
			!slices.Equal(s.platform.APIs, found.APIs)
		s.platform = &found
		s.mu.Unlock()
		if changed {
			s.reportCluster()
		}
		pace.Sleep(ctx, platformEvery)
	}
}

// checkOLM is asked before anything is done in a reconcile: where OLM is at work, nothing is.
func (s *session) checkOLM(ctx context.Context) error {
	running, changed, err := s.olm.Running(ctx)
	if changed {
		s.reportCluster()
	}
	if err == nil && running != "" {
		err = s.mirrors.StandBack(ctx)
	}
	return err
}

// prepareMirrors makes the definitions and the admission policy before the first plan needs them; where that fails, a
// reconcile of a namespace says so.
func (s *session) prepareMirrors(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-s.inbox.First():
	}
	all := s.inbox.All()
	if len(all) == 0 {
		return
	}
	err := s.checkOLM(ctx)
	if err == nil && s.olmMessage() == "" {
		err = s.mirrors.Ensure(ctx, all[0].Settings.WithDefaults().Mirror)
	}
	if failure.IsCrash(err) {
		s.end(err)
	}
}

// olmMessage says what stands in the way where OLM is at work, "" otherwise.
func (s *session) olmMessage() string {
	running := s.olm.Known()
	if running == "" {
		return ""
	}
	return "OLM is at work in this cluster, and two masters would undo each other's work. Found: " + running +
		". Scale these Deployments to 0 or remove them, and Chandler goes on by itself"
}

// stopped looks at the stop switch as it is now, and whether OLM runs.
func (s *session) stopped(namespace string) *failure.Failure {
	if message := s.olmMessage(); message != "" {
		return &failure.Failure{Class: failure.Stopped, Reason: failure.ReasonOLM, Quick: true, Message: message}
	}
	p, _, _ := s.inbox.Get(namespace)
	allowed := s.cfg.GoAheads.Check(s.cfg.Tenant, s.cfg.ClusterID)
	switch {
	case p.Stopped, allowed == hubclient.Stopped:
		return &failure.Failure{
			Class: failure.Stopped, Reason: failure.ReasonStopped, Quick: true,
			Message: "effects are stopped",
		}
	case allowed == hubclient.Unknown:
		return &failure.Failure{
			Class: failure.Stopped, Reason: failure.ReasonNoGoAhead, Quick: true,
			Message: fmt.Sprintf("the hub has not said within %s that effects are allowed; the next step waits for that",
				protocol.GoAheadValid),
		}
	}
	return nil
}

// goAheadLook is how often it is looked whether the hub allows what it did not: looking costs nothing.
const goAheadLook = 250 * time.Millisecond

// followGoAhead has all namespaces worked on again when effects are allowed that were not.
func (s *session) followGoAhead(ctx context.Context) {
	last := s.cfg.GoAheads.Check(s.cfg.Tenant, s.cfg.ClusterID)
	for ctx.Err() == nil {
		pace.Sleep(ctx, goAheadLook)
		now := s.cfg.GoAheads.Check(s.cfg.Tenant, s.cfg.ClusterID)
		if now == last {
			continue
		}
		s.cfg.Log.InfoContext(ctx, "whether effects are allowed has changed", "allowed", now == hubclient.Going,
			"known", now != hubclient.Unknown)
		last = now
		for _, p := range s.inbox.All() {
			s.queue.Add(p.Scope.Namespace)
		}
	}
}

// restore puts right what the executor needs for itself, admission policies and definitions, when somebody touches it
// while the cluster is held.
func (s *session) restore(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-s.edited:
		}
		// The definitions come first, since policies are tried on what they define; and not with the account that the
		// cluster is reached by, which need not be allowed to make any.
		err := kube.Definitions{Epoch: s.client}.EnsureOwn(ctx)
		if err == nil {
			err = hold(ctx, s.base, s.client.Number)
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.WarnContext(ctx, "policies or definitions of Chandler are not as they should be", "error", err)
			if kube.IsFenceAhead(err) {
				s.end(err)
				return
			}
			s.ownTouched()
			pace.Sleep(ctx, errorPause)
		}
	}
}

// ownTouched has put right what is the executor's own.
func (s *session) ownTouched() {
	select {
	case s.edited <- struct{}{}:
	default: // it is being put right already
	}
}
