package protocol_test

import (
	"crypto/ed25519"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

// TestGrantSignature: a grant survives JSON, and every change of it is noticed (DESIGN D6).
func TestGrantSignature(t *testing.T) {
	t.Parallel()
	public, priv, err := ed25519.GenerateKey(nil)
	pub := keys.Accept(public)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	g, err := protocol.Grant{Plan: "p", Digest: "d", Cluster: "c", Namespace: "n", Expires: now.Add(time.Hour)}.Sign(
		priv)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var read protocol.Grant
	if err := json.Unmarshal(raw, &read); err != nil {
		t.Fatal(err)
	}
	if err := read.Verify(pub); err != nil {
		t.Errorf("grant after JSON: %v", err)
	}
	for name, change := range map[string]func(*protocol.Grant){
		"plan":      func(g *protocol.Grant) { g.Plan = "q" },
		"digest":    func(g *protocol.Grant) { g.Digest = "e" },
		"cluster":   func(g *protocol.Grant) { g.Cluster = "d" },
		"namespace": func(g *protocol.Grant) { g.Namespace = "m" },
		"expires":   func(g *protocol.Grant) { g.Expires = g.Expires.Add(time.Hour) },
		"signature": func(g *protocol.Grant) { g.Signature = nil },
	} {
		changed := read
		change(&changed)
		if err := changed.Verify(pub); !errs.Is(err, errs.Forbidden) {
			t.Errorf("%s changed: got %v, want forbidden", name, err)
		}
	}
	if read.Expired(now) || !read.Expired(now.Add(time.Hour)) {
		t.Error("expiry is not at Expires")
	}
}

// TestProofOfAPosition: a proof is of one event at one position, told to one cluster; those of older releases, which
// name no event, are still good (DESIGN D1).
func TestProofOfAPosition(t *testing.T) {
	t.Parallel()
	public, priv, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	at, hash := events.Position{Epoch: 2, N: 7}, digest.Bytes([]byte("an event"))
	proof, err := protocol.ProvePosition("c", at, hash, priv)
	if err != nil {
		t.Fatal(err)
	}
	old, err := protocol.ProvePosition("c", at, "", priv)
	if err != nil {
		t.Fatal(err)
	}
	other := append(slices.Clone(proof[:len(proof)-1]), proof[len(proof)-1]^1)
	for name, c := range map[string]struct {
		cluster string
		at      events.Position
		proof   []byte
		hash    digest.Digest
		ok      bool
	}{
		"as it was told":   {"c", at, proof, hash, true},
		"without an event": {"c", at, old, "", true},
		"another cluster":  {"d", at, proof, hash, false},
		"another position": {"c", events.Position{Epoch: 2, N: 8}, proof, hash, false},
		"another event":    {"c", at, other, protocol.ProvedHash(other), false},
		"the event cut":    {"c", at, proof[:len(old)], "", false},
		"half of it":       {"c", at, proof[:20], "", false},
		"nothing":          {"c", at, nil, "", false},
	} {
		got, ok := protocol.Proved(c.cluster, c.at, c.proof, keys.Accept(public))
		if ok != c.ok || got != c.hash {
			t.Errorf("%s: proved %v of event %q, want %v of %q", name, ok, got, c.ok, c.hash)
		}
	}
	if _, err := protocol.ProvePosition("c", at, "sha256:ab", priv); !errs.Is(err, errs.Invalid) {
		t.Errorf("half a hash: %v", err)
	}
}

// TestSubjects: names never reach a subject, since a dot in them would make another token.
func TestSubjects(t *testing.T) {
	t.Parallel()
	s := protocol.Scope{Tenant: "default", ClusterID: "id", Cluster: "a.b", Namespace: "n.m"}
	for _, subject := range []string{protocol.PlansSubject(s), protocol.ScopeReportSubject(s)} {
		if n := len(strings.Split(subject, ".")); n != 5 {
			t.Errorf("%s has %d tokens, want 5", subject, n)
		}
	}
	if protocol.ScopeID("id", "n") == protocol.ScopeID("id", "m") {
		t.Error("two namespaces share an id")
	}
}
