// Package authn says who asks: by a token of Chandler, by one of a provider of OpenID Connect, or by the certificate of
// a machine. Who shows a token is whose the token is, whatever certificate the connection has beside it.
package authn

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/clientcert"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/oidc"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxTokenChars bounds a token of Chandler before it is hashed and looked up.
const maxTokenChars = 512

// MaxBearerChars bounds what a caller shows: the longest is a JWT.
const MaxBearerChars = oidc.MaxTokenChars

// Tokens finds who holds a token of Chandler.
type Tokens interface {
	Caller(ctx context.Context, token string) (model.Caller, events.Position, error)
}

// Identities finds whom a provider, or an authority of certificates, vouches for.
type Identities interface {
	SignedIn(ctx context.Context, p model.Person) (model.Identity, events.Position, error)
}

// Verifier checks tokens of providers; nil where there are none.
type Verifier interface {
	Verify(ctx context.Context, token string) (model.Person, error)
}

// Machines checks client certificates; nil where no authority is set.
type Machines interface {
	Verify(shown []*x509.Certificate) (model.Person, error)
}

// Request is what a caller shows.
type Request struct {
	Bearer string
	// Certificates are what the connection shows where there is no bearer token: that of a machine, with those that
	// lead to its authority.
	Certificates []*x509.Certificate
	// OnBehalfOf is what a provider says of the person for whom a service account asks; "" where it asks for itself.
	OnBehalfOf string
	// Ticket takes the place of a bearer token, for the address of one stream.
	Ticket, Address string
}

// Tickets finds who made a ticket, which works once.
type Tickets interface {
	Caller(ctx context.Context, ticket, address string) (model.Caller, events.Position, error)
}

// Authenticator says who asks.
type Authenticator struct {
	Tickets    Tickets
	Tokens     Tokens
	Identities Identities
	Verifier   Verifier
	Machines   Machines
}

// Claims says of whom a token or a certificate says it is, where it is one that a provider or an authority signs.
// Nobody has checked that; it is empty where it cannot be read.
func (a *Authenticator) Claims(r Request) (subject string, signed bool) {
	if r.Bearer == "" && len(r.Certificates) > 0 {
		return clientcert.Claims(r.Certificates), true
	}
	if a.Verifier == nil || !oidc.Looks(r.Bearer) {
		return "", false
	}
	return oidc.Subject(r.Bearer), true
}

// Caller finds who asks, and at which version of roles and bindings that was.
func (a *Authenticator) Caller(ctx context.Context, r Request) (model.Caller, events.Position, error) {
	if r.Ticket != "" {
		return a.Tickets.Caller(ctx, r.Ticket, r.Address)
	}
	if r.Bearer == "" && len(r.Certificates) > 0 {
		return a.machine(ctx, r)
	}
	if a.Verifier != nil && oidc.Looks(r.Bearer) {
		if r.OnBehalfOf != "" {
			return model.Caller{}, events.Position{}, errPersonActs()
		}
		return a.person(ctx, r.Bearer)
	}
	if len(r.Bearer) > maxTokenChars {
		return model.Caller{}, events.Position{}, errs.New(errs.Unauthenticated,
			"the bearer token is no token of Chandler: it has more than %d characters", maxTokenChars)
	}
	who, version, err := a.Tokens.Caller(ctx, r.Bearer)
	who.Session = model.Session{Token: model.HashToken(r.Bearer)}
	if err != nil || r.OnBehalfOf == "" {
		return who, version, err
	}
	return a.actFor(ctx, who, r.OnBehalfOf)
}

// actFor has a service account ask for the person whom a provider vouches for, by a token that the person has given it.
// Whether it may ask for people at all is for its rights to say. A stream of theirs ends with either.
func (a *Authenticator) actFor(
	ctx context.Context, who model.Caller, token string,
) (model.Caller, events.Position, error) {
	if who.Kind != access.KindServiceAccount {
		return who, events.Position{}, errPersonActs()
	}
	if a.Verifier == nil {
		return who, events.Position{}, errs.New(errs.Unauthenticated, "no identity provider is set, whose word %s could be",
			HeaderOnBehalfOf)
	}
	person, version, err := a.person(ctx, token)
	switch {
	case errs.Is(err, errs.Unauthenticated):
		return who, version, errs.Wrap(errs.Unauthenticated, err, "%s", HeaderOnBehalfOf)
	case err != nil:
		return who, version, err
	case person.Tenant != who.Tenant:
		return who, version, errs.New(errs.Unauthenticated, "%s names somebody of another tenant", HeaderOnBehalfOf)
	}
	who.OnBehalfOf, who.PersonGroups, who.IdentityID = person.Actor, person.Groups, person.IdentityID
	own := who.Session
	who.Session = person.Session
	who.Session.Token, who.Session.Machine = own.Token, who.Machine
	who.Session.Until = earlier(own.Until, person.Session.Until)
	return who, version, nil
}

// earlier is the first of two moments; zero is none.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// machine is who shows a certificate that an authority vouches for, and may ask for people as other service accounts
// may.
func (a *Authenticator) machine(ctx context.Context, r Request) (model.Caller, events.Position, error) {
	if a.Machines == nil {
		return model.Caller{}, events.Position{}, errs.New(errs.Unauthenticated, "no authority of client certificates is set: "+
			"send a bearer token")
	}
	p, err := a.Machines.Verify(r.Certificates)
	if err != nil {
		return model.Caller{}, events.Position{}, err
	}
	who, version, err := a.known(ctx, p)
	who.Machine = who.IdentityID
	if err != nil || r.OnBehalfOf == "" {
		return who, version, err
	}
	return a.actFor(ctx, who, r.OnBehalfOf)
}

func errPersonActs() error {
	return errs.New(errs.Forbidden, "a person asks for nobody else: %s is for service accounts: their tokens (chandler token "+
		"add --service-account) and certificates", HeaderOnBehalfOf).At("header."+HeaderOnBehalfOf, access.RuleAllowed)
}

// HeaderOnBehalfOf is where a service account says for whom it asks, as Authorization does: Bearer and a token.
const HeaderOnBehalfOf = "Chandler-On-Behalf-Of"

// person is whom a provider vouches for.
func (a *Authenticator) person(ctx context.Context, token string) (model.Caller, events.Position, error) {
	p, err := a.Verifier.Verify(ctx, token)
	if err != nil {
		return model.Caller{}, events.Position{}, err
	}
	return a.known(ctx, p)
}

// known is whom somebody vouches for, as Chandler knows them. What they may do is for bindings to say: of their actor,
// and of their groups.
func (a *Authenticator) known(ctx context.Context, p model.Person) (who model.Caller, _ events.Position, err error) {
	i, version, err := a.Identities.SignedIn(ctx, p)
	if err != nil {
		return who, version, err
	}
	return model.Caller{
		Tenant: p.Tenant, Actor: i.Actor, Kind: i.Kind, Groups: p.Groups, IdentityID: i.ID,
		Session: model.Session{Tenant: p.Tenant, Identity: i.ID, Actor: i.Actor, Until: p.Until},
	}, version, nil
}
