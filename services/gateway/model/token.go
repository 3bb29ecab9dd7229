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
	Actor     string     `json:"actor" doc:"Opaque id of who acts with it, as events and approvals name them; all tokens of one person have the same"`
	CreatedAt time.Time  `json:"createdAt"`
	EndsAt    *time.Time `json:"endsAt,omitempty" doc:"From then on it is refused: it was revoked, or expires"`
}

// Ended says whether a token is refused.
func (t Token) Ended(now time.Time) bool { return t.EndsAt != nil && !t.EndsAt.After(now) }

// AddToken makes a token.
type AddToken struct {
	Name  string `json:"name" minLength:"1" maxLength:"100" pattern:"^[^\\x00-\\x1f\\x7f]+$" patternDescription:"without control characters" doc:"For people, such as the name of the person and the machine; no event contains it"`
	Role  Role   `json:"role" enum:"admin,viewer,none" doc:"What it allows by itself in the whole tenant. admin: everything; viewer: reads; none: what role bindings give to the actor"`
	Actor string `json:"actor,omitempty" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Actor of a token that the same person has or had; without it the token is that of somebody new"`
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
