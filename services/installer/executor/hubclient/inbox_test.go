package hubclient_test

import (
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/hubclient"
)

func at(epoch, n int64, stopped bool) protocol.ScopePlans {
	return protocol.ScopePlans{
		Scope: protocol.Scope{Namespace: "ops"}, Position: events.Position{Epoch: epoch, N: n},
		Stopped: stopped,
	}
}

// TestInboxOrder: news may overtake each other; what is newer stays (DESIGN D4).
func TestInboxOrder(t *testing.T) {
	t.Parallel()
	i := hubclient.NewInbox()
	var woken []string
	i.ListenWith(func(ns string) { woken = append(woken, ns) })
	i.Offer(at(1, 5, false))
	i.Offer(at(1, 4, true))
	if p, behind, known := i.Get("ops"); p.Position.N != 5 || p.Stopped || behind || !known || len(woken) != 1 {
		t.Errorf("after older news: %+v, behind %v, woken %v", p.Position, behind, woken)
	}
	i.Offer(at(1, 5, true)) // the same position may say something new, such as a renewed grant
	if p, _, _ := i.Get("ops"); !p.Stopped || len(woken) != 2 {
		t.Errorf("after news of the same position: %+v, woken %v", p, woken)
	}
}

// TestInboxBehind: a stream whose last value stays older than what is known comes from a record that has
// gone back; one that catches up, or whose epoch was raised, is relied on again (DESIGN D1).
func TestInboxBehind(t *testing.T) {
	t.Parallel()
	i := hubclient.NewInbox()
	i.Offer(at(1, 5, false))
	i.Settle(at(1, 4, false))
	if _, behind, _ := i.Get("ops"); behind {
		t.Error("behind after one look: the read may have been overtaken")
	}
	i.Settle(at(1, 4, false))
	if p, behind, _ := i.Get("ops"); !behind || p.Position.N != 5 {
		t.Errorf("behind %v at %s after two looks", behind, p.Position)
	}
	i.Settle(at(2, 3, false))
	if p, behind, _ := i.Get("ops"); behind || p.Position.Epoch != 2 {
		t.Errorf("behind %v at %s after the epoch was raised", behind, p.Position)
	}
	if top, _ := i.Highest(); top.Epoch != 2 || len(i.All()) != 1 {
		t.Errorf("highest %s of %d", top, len(i.All()))
	}
}

// TestInboxGroups: a group is known to be nowhere only when every scope tells of the one that it has: the labels of its
// targets decide which webhooks are asked (R-CSV-44).
func TestInboxGroups(t *testing.T) {
	t.Parallel()
	scope := func(groups int, id string) protocol.ScopePlans {
		return protocol.ScopePlans{
			Scope: protocol.Scope{Namespace: "ops"}, OperatorGroups: groups,
			OperatorGroup: protocol.OperatorGroup{ID: id},
		}
	}
	for name, c := range map[string]struct {
		scope  protocol.ScopePlans
		missed int
		want   bool
	}{
		"its own":        {scope(1, "a"), 0, true},
		"another":        {scope(1, "b"), 0, false},
		"none":           {scope(0, ""), 0, false},
		"several":        {scope(2, ""), 0, true},
		"a scope missed": {scope(1, "b"), 1, true},
	} {
		i := hubclient.NewInbox()
		i.Offer(c.scope)
		i.Ready(c.missed)
		if got := i.MayHaveGroup("a"); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
