package model

import (
	"crypto/sha256"
	"time"
)

// Token lets somebody call the API, as its role allows.
type Token struct {
	ID        string     `json:"id"`
	Name      string     `json:"name,omitempty" doc:"For people; no event contains it"`
	Role      Role       `json:"role" enum:"admin,viewer,none"`
	Kind      string     `json:"kind" enum:"User,ServiceAccount" doc:"Whose it is: a person's, or a program's"`
	Actor     string     `json:"actor" doc:"Opaque id of who acts with it, as events and approvals name them; all tokens of one person have the same"`
	CreatedAt time.Time  `json:"createdAt"`
	EndsAt    *time.Time `json:"endsAt,omitempty" doc:"From then on it is refused: it was revoked, or expires"`
	UsedAt    *time.Time `json:"usedAt,omitempty" doc:"When it last let somebody in, to five minutes; absent where it never did"`
	// PreviousEndsAt is of the secret before.
	PreviousEndsAt *time.Time `json:"previousEndsAt,omitempty" doc:"The token was rotated: from then on the secret before is refused"`
}

// Ended says whether a token is refused.
func (t Token) Ended(now time.Time) bool { return t.EndsAt != nil && !t.EndsAt.After(now) }

// AddToken makes a token.
type AddToken struct {
	Name   string     `json:"name" minLength:"1" maxLength:"100" pattern:"^[^\\x00-\\x1f\\x7f]+$" patternDescription:"without control characters" doc:"For people, such as the name of the person and the machine; no event contains it"`
	Role   Role       `json:"role" enum:"admin,viewer,none" doc:"What it allows by itself in the whole tenant. admin: everything; viewer: reads; none: what role bindings give to the actor"`
	Actor  string     `json:"actor,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Actor of a token that the same person has or had; without it the token is that of somebody new"`
	Kind   string     `json:"kind,omitempty" enum:"User,ServiceAccount" doc:"Whose it is: a person's, or a program's. Without it that of the actor, and User for somebody new"`
	EndsAt *time.Time `json:"endsAt,omitempty" doc:"From then on it is refused; without it in 90 days, or sooner where the installation allows less"`
}

// RotateToken gives a token another secret.
type RotateToken struct {
	OverlapSeconds *int       `json:"overlapSeconds,omitempty" minimum:"0" maximum:"604800" doc:"How long the secret before is good still; without it an hour. One that was kept from an earlier rotation is refused at once"`
	EndsAt         *time.Time `json:"endsAt,omitempty" doc:"From then on the token is refused; without it in 90 days, or sooner where the installation allows less"`
}

// NewToken is a token with its secret.
type NewToken struct {
	Token
	Secret string `json:"token" doc:"The bearer token. It is answered this once; a hash of it is kept"`
}

// TokenHash is what is stored of a bearer token.
type TokenHash [sha256.Size]byte

// HashToken hashes a bearer token. It has the entropy of a key, so that one round is enough.
func HashToken(token string) TokenHash { return sha256.Sum256([]byte(token)) }

// Identity is somebody at a provider of OpenID Connect, or a machine with a certificate, as Chandler knows them.
type Identity struct {
	ID        string    `json:"id"`
	Kind      string    `json:"kind" enum:"User,ServiceAccount" doc:"Whose it is: a person's, or a machine's that shows a certificate"`
	Provider  string    `json:"provider" doc:"Name of the provider, or of the authority of certificates, as the settings have it"`
	Name      string    `json:"name,omitempty" doc:"For people, as the provider says it, or the common name; no event contains it and no right hangs on it"`
	Actor     string    `json:"actor" doc:"Opaque id of the person or machine, as events, approvals and bindings name them"`
	Disabled  bool      `json:"disabled,omitempty" doc:"It lets nobody in, whatever the provider or the authority says"`
	CreatedAt time.Time `json:"createdAt" doc:"When Chandler first saw it"`
	SeenAt    time.Time `json:"seenAt" doc:"When it was seen last, to the hour"`
}

// ConfigureIdentity changes what is given.
type ConfigureIdentity struct {
	Actor    string `json:"actor,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Actor of a token or identity that the same person, or machine, has: approvals count them as one person, and bindings of that actor hold for both"`
	Disabled *bool  `json:"disabled,omitempty" doc:"true lets nobody in by it from now on"`
}

// Subject is what an identity is known by.
type Subject [sha256.Size]byte

// SubjectOf is the digest of an issuer's subject.
func SubjectOf(issuer, subject string) Subject {
	return sha256.Sum256([]byte(issuer + "\x00" + subject))
}

// Session is what lets somebody in: a stream that is open goes on while it is good.
type Session struct {
	Token    TokenHash // zero: no token
	Tenant   string    // of the identity
	Identity string    // id of the identity; "" without one
	Actor    string    // whose the identity was then
	Machine  string    // id of the identity of a client certificate; "" without one. Tenant is that of this one, too
	Until    time.Time // when what the provider or the certificate said ends; zero: never
}

// Person is whom an identity provider vouches for, or the machine for which an authority of certificates does.
type Person struct {
	Tenant string
	Kind   string // access.KindUser or access.KindServiceAccount; "" is a user
	// Issuer and Subject tell people apart, and nothing else does: names and addresses are given to others later.
	Issuer, Subject string
	Provider        string // name of it
	Name            string // for people; "" where the provider tells none
	Groups          []string
	Until           time.Time // when what the provider says ends
}

// AuthConfig tells programs how people sign in. Everybody may read it.
type AuthConfig struct {
	Providers []LoginProvider `json:"providers" nullable:"false"`
}

// LoginProvider is how people sign in at one identity provider.
type LoginProvider struct {
	Name     string `json:"name"`
	Issuer   string `json:"issuer" doc:"Where OpenID Connect discovery begins"`
	ClientID string `json:"clientID"`
	// ClientSecret is none: the provider wants one of programs that cannot keep any.
	ClientSecret string   `json:"clientSecret,omitempty" doc:"For providers that want one of programs that cannot keep any; it is no secret"`
	Scopes       []string `json:"scopes" nullable:"false"`
}

// BreakGlassMark begins every break-glass token, so that it is looked for where these are, and can be searched for
// where one leaked.
const BreakGlassMark = "chb_"

// BreakGlass is the token of a tenant for a bad day: it works while nobody can sign in.
type BreakGlass struct {
	ID        string         `json:"id" doc:"Of the token, and the actor of what is done with it"`
	Good      bool           `json:"good" doc:"false: it was revoked, and none has taken its place"`
	CreatedAt time.Time      `json:"createdAt"`
	Reason    string         `json:"reason,omitempty" doc:"Why it was used last; absent where that was erased"`
	Use       *BreakGlassUse `json:"use,omitempty" doc:"When it was used last; absent where it never was"`
}

// BreakGlassUse is when the break-glass token was used. It is one use as long as it is opened again before its end.
type BreakGlassUse struct {
	Open  bool      `json:"open" doc:"The token lets in now"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until" doc:"When it ends, or ended"`
}

// NewBreakGlass is the token with its secret.
type NewBreakGlass struct {
	BreakGlass
	Secret string `json:"token" doc:"The bearer token. It is answered this once; a hash of it is kept"`
}

// OpenBreakGlass opens a session in which the token lets in.
type OpenBreakGlass struct {
	Reason string `json:"reason" minLength:"1" maxLength:"1000" pattern:"^[^\\x00-\\x1f\\x7f]+$" patternDescription:"one line without control characters" doc:"Why it has to be, such as the number of an incident. The event has a commitment to it, and it can be erased"`
}
