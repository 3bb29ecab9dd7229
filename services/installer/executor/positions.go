package executor

import (
	"context"
	"maps"
	"sync"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// positions are those of the record that were acted on, by namespace, as the cluster keeps them. Its methods may be
// called side by side, for one namespace one at a time.
type positions struct {
	mu     sync.Mutex
	stored map[string]kube.Seen
	client seenClient
}

// seenClient keeps positions in the cluster.
type seenClient interface {
	Set(ctx context.Context, namespace string, p kube.Seen) error
	Forget(ctx context.Context, namespace string) error
}

func (p *positions) of(namespace string) kube.Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stored[namespace]
}

func (p *positions) highest() kube.Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	var top kube.Seen
	for s := range maps.Values(p.stored) {
		if top.Less(s.Position) {
			top = s
		}
	}
	return top
}

// note writes the position of a message down, before a plan or a removal begins because of it. What is begun already
// goes on whatever the record says; so nothing else needs a write, and a message costs none.
func (p *positions) note(ctx context.Context, plans protocol.ScopePlans) error {
	ns := plans.Scope.Namespace
	if !p.of(ns).Less(plans.Position) {
		return nil
	}
	next := kube.Seen{Position: plans.Position, Proof: plans.Proof}
	if err := p.client.Set(ctx, ns, next); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stored[ns] = next
	return nil
}

// forget drops what is kept of a namespace. After a crash before the answer it is dropped once more.
func (p *positions) forget(ctx context.Context, namespace string) error {
	p.mu.Lock()
	_, there := p.stored[namespace]
	p.mu.Unlock()
	if !there {
		return nil
	}
	if err := p.client.Forget(ctx, namespace); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.stored, namespace)
	return nil
}
