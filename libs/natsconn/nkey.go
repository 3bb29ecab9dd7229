package natsconn

import (
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// NewSeed makes the seed of a new user from the system's randomness.
func NewSeed() (string, error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return "", errs.Wrap(errs.Internal, err, "make an NKey")
	}
	seed, err := pair.Seed()
	return string(seed), errs.Wrap(errs.Internal, err, "make an NKey")
}

// PublicKey is what the server knows a user by whose seed this is.
func PublicKey(seed string) (string, error) {
	_, public, err := userKey(seed)
	return public, err
}

// IsPublicKey reports whether a text is the public key of a user.
func IsPublicKey(text string) bool { return nkeys.IsValidPublicUserKey(text) }

// userKey reads the seed of a user. Errors never quote it.
func userKey(seed string) (nkeys.KeyPair, string, error) {
	pair, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		return nil, "", errs.New(errs.Invalid, "setting nats-nkey-seed: it is no seed of an NKey: %v", err)
	}
	public, err := pair.PublicKey()
	if err == nil && !nkeys.IsValidPublicUserKey(public) {
		err = errs.New(errs.Invalid, "setting nats-nkey-seed: it is the seed of something else than a user")
	}
	return pair, public, err
}

func nkey(seed string, jwt func() (string, error)) (nats.Option, error) {
	pair, public, err := userKey(seed)
	if err != nil {
		return nil, err
	}
	if jwt != nil {
		return nats.UserJWT(jwt, pair.Sign), nil
	}
	return nats.Nkey(public, pair.Sign), nil
}

// SignWith signs a text with the seed of a user. Errors never quote it.
func SignWith(seed string, text []byte) ([]byte, error) {
	pair, _, err := userKey(seed)
	if err != nil {
		return nil, err
	}
	signature, err := pair.Sign(text)
	return signature, errs.Wrap(errs.Internal, err, "sign with an NKey")
}

// SignedBy reports whether who has the seed of a public key signed a text.
func SignedBy(public string, text, signature []byte) bool {
	pair, err := nkeys.FromPublicKey(public)
	return err == nil && IsPublicKey(public) && pair.Verify(text, signature) == nil
}
