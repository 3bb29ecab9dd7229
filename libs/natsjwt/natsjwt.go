// Package natsjwt is a NATS server in operator mode: who is trusted there, and the accounts and users that it is told
// of while it runs. The rights are those of libs/natsauth, written as JWTs instead of in the server's configuration.
//
// An installation has one account, which never changes when an agent comes or goes: it exports what the table shares
// with agents, privately, so that an account needs a token for each subject that it imports. The agent of each cluster
// has an account of its own (ADR 0044), whose JWT imports the subjects of that cluster alone. Its users are signed with
// a key that belongs to one key of one agent: who was accepted before is refused from the moment that the account's JWT
// is replaced, however long its own JWT would be good.
//
// Keys of accounts of agents are derived, so that nothing of them is stored: each process that has the Authority makes
// the same ones. The library stamps each JWT with the time of the system.
package natsjwt

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
)

// Authority is what a process needs that lets agents in. All but Account and System is secret.
type Authority struct {
	// Operator is the seed of a signing key of the operator. The operator's own key stays with a person.
	Operator string `json:"operator"`
	// Account is the public key of the installation's account, and AccountSigning the seed of a key that signs for it
	// what others may import.
	Account        string `json:"account"`
	AccountSigning string `json:"accountSigning"`
	// Root is what keys of accounts are derived from: 32 bytes.
	Root []byte `json:"root"`
	// System are credentials of a user that may give the server accounts, as the content of a creds file.
	System string `json:"system"`
}

// rootBytes is the size of Authority.Root: that of the keys that are derived.
const rootBytes = 32

// ParseAuthority reads one from JSON. Errors never quote it.
func ParseAuthority(text string) (*Authority, error) {
	var a Authority
	if err := json.Unmarshal([]byte(text), &a); err != nil {
		return nil, errs.New(errs.Invalid, "it is no JSON as chandler keys nats --jwt writes it")
	}
	if _, err := pairOf(a.Operator, nkeys.PrefixByteOperator); err != nil {
		return nil, errs.New(errs.Invalid, "operator: %v", err)
	}
	if _, err := pairOf(a.AccountSigning, nkeys.PrefixByteAccount); err != nil {
		return nil, errs.New(errs.Invalid, "accountSigning: %v", err)
	}
	if !nkeys.IsValidPublicAccountKey(a.Account) {
		return nil, errs.New(errs.Invalid, "account: it is no public key of an account")
	}
	if len(a.Root) != rootBytes {
		return nil, errs.New(errs.Invalid, "root: it has %d bytes, want %d", len(a.Root), rootBytes)
	}
	if _, err := jwt.ParseDecoratedUserNKey([]byte(a.System)); err != nil {
		return nil, errs.New(errs.Invalid, "system: it is no content of a creds file")
	}
	return &a, nil
}

// pairOf reads a seed of a kind. Errors never quote it.
func pairOf(seed string, kind nkeys.PrefixByte) (nkeys.KeyPair, error) {
	prefix, _, err := nkeys.DecodeSeed([]byte(seed))
	if err != nil || prefix != kind {
		return nil, errs.New(errs.Invalid, "it is no seed of a key of %s", kind)
	}
	return nkeys.FromSeed([]byte(seed))
}

// What keys are derived for; none is any other's.
const (
	ofAccount = "chandler.nats.account.v1"
	ofSigner  = "chandler.nats.signer.v1"
)

// derive makes the key of an account for a purpose.
func (a *Authority) derive(purpose string, of ...string) (nkeys.KeyPair, string, error) {
	info, err := json.Marshal(append([]string{purpose}, of...)) // its quotes keep the parts apart
	if err != nil {
		return nil, "", errs.Wrap(errs.Internal, err, "derive a key of NATS")
	}
	raw, err := hkdf.Key(sha256.New, a.Root, nil, string(info), rootBytes)
	if err != nil {
		return nil, "", errs.Wrap(errs.Internal, err, "derive a key of NATS")
	}
	pair, err := nkeys.FromRawSeed(nkeys.PrefixByteAccount, raw)
	if err != nil {
		return nil, "", errs.Wrap(errs.Internal, err, "derive a key of NATS")
	}
	public, err := pair.PublicKey()
	return pair, public, errs.Wrap(errs.Internal, err, "derive a key of NATS")
}

// Agent is the agent of a cluster as NATS knows it.
type Agent struct {
	Tenant, ClusterID string
	// Key is the public key of the user that was accepted; "" is nobody.
	Key string
	// Joiner is the public key of the token by which one may ask to be accepted; "" is nobody.
	Joiner string
}

// account are the key and name of an account of a cluster.
func (a *Authority) account(name string, who Agent) (pair nkeys.KeyPair, public string, err error) {
	return a.derive(ofAccount, name, who.Tenant, who.ClusterID)
}

// Accounts are the JWTs of the accounts of a cluster: of its agent, and of who wants to become it. An account without a
// key imports nothing and takes no connection; the server closes those that are there.
func (a *Authority) Accounts(who Agent) (tokens []string, err error) {
	for _, part := range []struct {
		user natsauth.User
		key  string
	}{
		{natsauth.AgentUser(who.Tenant, who.ClusterID), who.Key},
		{natsauth.JoinUser(who.Tenant, who.ClusterID), who.Joiner},
	} {
		token, err := a.accountJWT(who, part.user, part.key)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

func (a *Authority) accountJWT(who Agent, user natsauth.User, key string) (string, error) {
	_, public, err := a.account(user.Name, who)
	if err != nil {
		return "", err
	}
	claims := jwt.NewAccountClaims(public)
	claims.Name = natsauth.Account + "-" + user.Name
	claims.Limits.Exports, claims.Limits.LeafNodeConn = 0, 0
	if key == "" {
		claims.Limits.Conn, claims.Limits.Imports = 0, 0
		claims.Revocations = jwt.RevocationList{}
		claims.RevokeAt(jwt.All, always)
		return a.sign(claims)
	}
	// A connection, and the one that takes its place while the server has not noticed that the first is gone.
	claims.Limits.Conn = 4
	_, signer, err := a.derive(ofSigner, user.Name, who.Tenant, who.ClusterID, key)
	if err != nil {
		return "", err
	}
	scope := jwt.NewUserScope()
	scope.Key, scope.Role = signer, user.Name
	scope.Template.Permissions = permissions(user.Permissions)
	claims.SigningKeys.AddScopedSigner(scope)
	if err := a.imports(claims, user); err != nil {
		return "", err
	}
	return a.sign(claims)
}

// always is the time of a revocation that no JWT is newer than: what the library stamps is before.
var always = time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC) //nolint:gochecknoglobals // a constant

// imports lets an account have what the table gives its user, each subject with a token for that subject and account.
func (a *Authority) imports(claims *jwt.AccountClaims, user natsauth.User) error {
	signing, err := pairOf(a.AccountSigning, nkeys.PrefixByteAccount)
	if err != nil {
		return err
	}
	for _, s := range user.Shares() {
		grant := jwt.NewActivationClaims(claims.Subject)
		grant.ImportSubject, grant.ImportType = jwt.Subject(s.Subject), kindOf(s)
		grant.IssuerAccount = a.Account
		token, err := grant.Encode(signing)
		if err != nil {
			return errs.Wrap(errs.Internal, err, "sign what an account imports")
		}
		claims.Imports.Add(&jwt.Import{
			Subject: jwt.Subject(s.Subject), Account: a.Account, Token: token, Type: kindOf(s),
		})
	}
	return nil
}

func kindOf(s natsauth.Share) jwt.ExportType {
	if s.Service {
		return jwt.Service
	}
	return jwt.Stream
}

func (a *Authority) sign(claims *jwt.AccountClaims) (string, error) {
	operator, err := pairOf(a.Operator, nkeys.PrefixByteOperator)
	if err != nil {
		return "", err
	}
	return signed(claims, operator)
}

// signed is the JWT of an account that the server will take.
func signed(claims *jwt.AccountClaims, by nkeys.KeyPair) (string, error) {
	found := jwt.CreateValidationResults()
	claims.Validate(found)
	if list := found.Errors(); len(list) > 0 {
		return "", errs.New(errs.Internal, "the JWT of account %s: %v", claims.Name, list[0])
	}
	token, err := claims.Encode(by)
	return token, errs.Wrap(errs.Internal, err, "sign the account %s", claims.Name)
}

// permissions as a JWT has them. An empty list denies everything: without a list the server allows everything.
func permissions(p natsauth.Permissions) (out jwt.Permissions) {
	for _, side := range []struct {
		allowed []string
		to      *jwt.Permission
	}{{p.Publish, &out.Pub}, {p.Subscribe, &out.Sub}} {
		side.to.Allow = slices.Clone(side.allowed)
		if len(side.allowed) == 0 {
			side.to.Deny = jwt.StringList{">"}
		}
	}
	return out
}

// AgentJWT is the JWT of the user that was accepted as the agent of a cluster, good for some time. It says who it is
// alone: what it may do is in the account's.
func (a *Authority) AgentJWT(who Agent, life time.Duration) (string, error) {
	return a.userJWT(who, natsauth.AgentUser(who.Tenant, who.ClusterID).Name, who.Key, life)
}

// JoinJWT is as AgentJWT, of who may ask to become the agent.
func (a *Authority) JoinJWT(who Agent, life time.Duration) (string, error) {
	return a.userJWT(who, natsauth.JoinUser(who.Tenant, who.ClusterID).Name, who.Joiner, life)
}

func (a *Authority) userJWT(who Agent, name, key string, life time.Duration) (string, error) {
	if !nkeys.IsValidPublicUserKey(key) {
		return "", errs.New(errs.Invalid, "%q is no public key of a user of NATS", key)
	}
	_, account, err := a.account(name, who)
	if err != nil {
		return "", err
	}
	signer, _, err := a.derive(ofSigner, name, who.Tenant, who.ClusterID, key)
	if err != nil {
		return "", err
	}
	token, err := jwt.IssueUserJWT(signer, account, key, name, life)
	return token, errs.Wrap(errs.Internal, err, "sign the user %s", name)
}

// Creds is the content of a creds file: a JWT and the seed of its user.
func Creds(token, seed string) (string, error) {
	text, err := jwt.FormatUserConfig(token, []byte(seed))
	return string(text), errs.Wrap(errs.Internal, err, "write a creds file")
}

// ReadCreds are the parts of a creds file, and when its JWT ends. Errors never quote it.
func ReadCreds(creds string) (token, seed string, ends time.Time, err error) {
	token, err = jwt.ParseDecoratedJWT([]byte(creds))
	if err != nil || token == "" {
		return "", "", ends, errs.New(errs.Invalid, "the credentials hold no JWT")
	}
	pair, err := jwt.ParseDecoratedUserNKey([]byte(creds))
	if err != nil {
		return "", "", ends, errs.New(errs.Invalid, "the credentials hold no seed of a user")
	}
	raw, err := pair.Seed()
	if err != nil {
		return "", "", ends, errs.New(errs.Invalid, "the credentials hold no seed of a user")
	}
	ends, err = Ends(token)
	return token, string(raw), ends, err
}

// Ends is when the JWT of a user ends, in UTC; zero where it does not.
func Ends(token string) (time.Time, error) {
	claims, err := jwt.DecodeUserClaims(token)
	if err != nil {
		return time.Time{}, errs.New(errs.Invalid, "it is no JWT of a user of NATS")
	}
	if claims.Expires == 0 {
		return time.Time{}, nil
	}
	return time.Unix(claims.Expires, 0).UTC(), nil
}
