package executor

import (
	"context"
	"maps"
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// positions are those of the record that were acted on, by namespace. Its methods may be called side by side.
type positions struct {
	mu    sync.Mutex
	known map[string]kube.Seen
}

func (p *positions) of(namespace string) kube.Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.known[namespace]
}

func (p *positions) set(namespace string, s kube.Seen) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known[namespace] = s
}

func (p *positions) highest() kube.Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var top kube.Seen
	for s := range maps.Values(p.known) {
		if top.Less(s.Position) {
			top = s
		}
	}
	return top
}

// note compares the message with what was acted on, and writes its position down before anything is
// done because of it. behind reports a record that has gone back.
func (p *positions) note(ctx context.Context, client *kube.Epoch, plans protocol.ScopePlans) (behind bool, err error) {
	ns := plans.Scope.Namespace
	seen := p.of(ns)
	if plans.Position.Less(seen.Position) {
		return true, nil
	}
	if plans.Position == seen.Position || len(plans.Plans) == 0 && len(plans.Installed) == 0 && seen.IsZero() {
		return false, nil // nothing new, or nothing here that could be acted on
	}
	next := kube.Seen{Position: plans.Position, Proof: plans.Proof}
	if err := client.SetSeen(ctx, ns, next); err != nil {
		return false, err
	}
	p.set(ns, next)
	return false, nil
}
