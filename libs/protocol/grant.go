package protocol

import (
	"crypto"
	"time"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// Sign returns the grant with its signature.
func (g Grant) Sign(key crypto.Signer) (Grant, error) {
	body, err := g.signed()
	if err != nil {
		return Grant{}, err
	}
	g.Signature, err = keys.Sign(key, body)
	return g, err
}

// Verify reports errs.Forbidden unless a key that is accepted signed the grant. Expiry is
// another question (Expired), since it is asked before the first step only.
func (g Grant) Verify(hub keys.Accepted) error {
	body, err := g.signed()
	if err != nil {
		return err
	}
	if !hub.Verify(body, g.Signature) {
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
