package protocol

import (
	"crypto/ed25519"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Sign returns the grant with its signature.
func (g Grant) Sign(key ed25519.PrivateKey) (Grant, error) {
	body, err := g.signed()
	if err != nil {
		return Grant{}, err
	}
	g.Signature = ed25519.Sign(key, body)
	return g, nil
}

// Verify reports errs.Forbidden unless the grant was signed with the key's other half. Expiry is
// another question (Expired), since it is asked before the first step only.
func (g Grant) Verify(key ed25519.PublicKey) error {
	body, err := g.signed()
	if err != nil {
		return err
	}
	if len(key) != ed25519.PublicKeySize || !ed25519.Verify(key, body, g.Signature) {
		return errs.New(errs.Forbidden, "grant of plan %s is not signed by the hub's key", g.Plan)
	}
	return nil
}

// Expired reports whether the grant no longer lets a plan begin.
func (g Grant) Expired(now time.Time) bool { return !now.Before(g.Expires) }

func (g Grant) signed() ([]byte, error) {
	g.Signature = nil
	g.Expires = g.Expires.UTC()
	b, err := digest.Canonical(g)
	return b, errs.Wrap(errs.Internal, err, "encode grant of plan %s", g.Plan)
}
