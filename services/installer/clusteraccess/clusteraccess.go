// Package clusteraccess is how the hub gets into a cluster without a credential that lasts: an account there, the
// rights that it has, an admission policy that keeps it from everybody else, and its tokens, each of which is asked
// for with the one before. The package is pure: it says what has to be there (ADR 0035).
package clusteraccess

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
)

// Accounts of Chandler in a cluster, both in Namespace.
const (
	Namespace = events.SystemNamespace
	// Hub is the account whose tokens the hub has. It reads and writes what a holder needs, and becomes Executor.
	Hub = "chandler-hub"
	// Executor is who installs operators: the fence lets it write in its epoch only. Nobody has a token of it.
	Executor = "chandler-executor"
)

// LabelManaged marks every object that Chandler writes.
const LabelManaged = "chandler-fleet.io/managed"

// EpochExtra is the key of the user's extra that has the epoch.
const EpochExtra = "chandler-epoch"

// Lifetimes of a token.
const (
	// DefaultLife is asked for where nobody says otherwise. A hub that is away for longer than half of it may find its
	// credential ended; clouds cap it (a day or two), and what they answer counts.
	DefaultLife = 7 * 24 * time.Hour
	// MinLife is the shortest life that the API of Kubernetes gives.
	MinLife = 10 * time.Minute
	// maxToken bounds what is taken for a token, in bytes: those of service accounts have about one thousand.
	maxToken = 16 << 10
)

// User is the name of an account as the API server knows it.
func User(account string) string { return "system:serviceaccount:" + Namespace + ":" + account }

// Token is what a token says of itself. Only the API server verifies it.
type Token struct {
	Issued  time.Time
	Expires time.Time
}

// Parse reads a token; ok is false for one that is not of the account Hub, or that does not end.
func Parse(token string) (t Token, ok bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > maxToken {
		return t, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return t, false
	}
	var claims struct {
		Subject string `json:"sub"`
		Issued  int64  `json:"iat"`
		Expires int64  `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Subject != User(Hub) || claims.Expires <= claims.Issued ||
		claims.Issued <= 0 {
		return t, false
	}
	return Token{Issued: time.Unix(claims.Issued, 0).UTC(), Expires: time.Unix(claims.Expires, 0).UTC()}, true
}

// Answered is what an API server gave for a request: the earlier of the two times that it names counts.
func Answered(token string, expires time.Time) (Token, error) {
	t, ok := Parse(token)
	if !ok {
		return t, errs.New(errs.Unavailable, "the API server answered something else than a token of %s that ends",
			User(Hub))
	}
	if !expires.IsZero() && expires.Before(t.Expires) {
		t.Expires = expires.UTC()
	}
	return t, nil
}

// Life is how long the token lives from its beginning.
func (t Token) Life() time.Duration { return t.Expires.Sub(t.Issued) }

// Due is when the next token is asked for: at half of the life. obtained is when this process was given the token, by
// its own clock, or zero for one that it found stored: then the API server's clock counts. So a clock that is ahead
// makes one token more at a start, and not one after the other.
func (t Token) Due(obtained time.Time) time.Time {
	if obtained.IsZero() {
		obtained = t.Issued
	}
	return obtained.Add(t.Life() / 2)
}

// HowToRenew says what a person does about a credential that is no good any more.
const HowToRenew = "give another one with chandler cluster credentials NAME --bootstrap"

// RefusedError is that the API server does not take the token.
type RefusedError struct {
	Expires time.Time
	// Ended is whether its time was over, by the hub's clock.
	Ended bool
}

// Error says what happened and what to do.
func (e RefusedError) Error() string {
	at := e.Expires.UTC().Format(time.RFC3339)
	if e.Ended {
		return fmt.Sprintf("the token by which the cluster is reached ended at %s, before another one could be asked "+
			"for: %s", at, HowToRenew)
	}
	return fmt.Sprintf("the API server does not take the token of %s, which would end at %s: the account was deleted, or "+
		"the API server has other keys; %s", User(Hub), at, HowToRenew)
}
