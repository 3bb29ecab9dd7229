package natsjwt

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/natsauth"
)

// Keys are the seeds of an installation on a server in operator mode. Whoever has Operator has everything.
type Keys struct {
	Operator        string `json:"operator"`
	OperatorSigning string `json:"operatorSigning"`
	System          string `json:"system"`     // of the system account
	SystemUser      string `json:"systemUser"` // may give the server accounts
	Account         string `json:"account"`    // of the installation
	AccountSigning  string `json:"accountSigning"`
	Root            []byte `json:"root"`
	// Users are the seeds of services and of the administrator, by name.
	Users map[string]string `json:"users"`
}

// Installation is what is written from Keys; nothing in it but Authority and the Creds is secret.
type Installation struct {
	Config    string            // of the server: operator, accounts, where it keeps those that it is given
	Creds     map[string]string // content of the creds file of each service and of the administrator
	Authority string            // JSON of the installer's setting
}

// MakeKeys makes new ones from the system's randomness.
func MakeKeys() (Keys, error) {
	k := Keys{Users: map[string]string{}, Root: make([]byte, rootBytes)}
	if _, err := rand.Read(k.Root); err != nil {
		return k, errs.Wrap(errs.Internal, err, "make keys of NATS")
	}
	var err error
	seed := func(kind nkeys.PrefixByte) string {
		pair, e := nkeys.CreatePair(kind)
		if e != nil {
			err = e
			return ""
		}
		raw, e := pair.Seed()
		if e != nil {
			err = e
		}
		return string(raw)
	}
	k.Operator, k.OperatorSigning = seed(nkeys.PrefixByteOperator), seed(nkeys.PrefixByteOperator)
	k.System, k.Account = seed(nkeys.PrefixByteAccount), seed(nkeys.PrefixByteAccount)
	k.AccountSigning, k.SystemUser = seed(nkeys.PrefixByteAccount), seed(nkeys.PrefixByteUser)
	for _, u := range natsauth.ServiceUsers() {
		k.Users[u.Name] = seed(nkeys.PrefixByteUser)
	}
	return k, errs.Wrap(errs.Internal, err, "make keys of NATS")
}

// signers are the pairs of Keys.
type signers struct {
	operator, operatorSigning, system, account, accountSigning nkeys.KeyPair
	public                                                     map[nkeys.KeyPair]string
}

func (k Keys) signers() (s signers, err error) {
	s.public = map[nkeys.KeyPair]string{}
	for _, one := range []struct {
		name, seed string
		kind       nkeys.PrefixByte
		into       *nkeys.KeyPair
	}{
		{"operator", k.Operator, nkeys.PrefixByteOperator, &s.operator},
		{"operatorSigning", k.OperatorSigning, nkeys.PrefixByteOperator, &s.operatorSigning},
		{"system", k.System, nkeys.PrefixByteAccount, &s.system},
		{"account", k.Account, nkeys.PrefixByteAccount, &s.account},
		{"accountSigning", k.AccountSigning, nkeys.PrefixByteAccount, &s.accountSigning},
	} {
		if *one.into, err = pairOf(one.seed, one.kind); err != nil {
			return s, errs.New(errs.Invalid, "%s: %v", one.name, err)
		}
		if s.public[*one.into], err = (*one.into).PublicKey(); err != nil {
			return s, errs.Wrap(errs.Internal, err, "read the key %s", one.name)
		}
	}
	if len(k.Root) != rootBytes {
		return s, errs.New(errs.Invalid, "root: it has %d bytes, want %d", len(k.Root), rootBytes)
	}
	return s, nil
}

// systemUser is who may give the server accounts, and do nothing else.
const systemUser = "accounts"

// Subjects of the server about accounts.
const (
	claimsUpdate = "$SYS.REQ.CLAIMS.UPDATE"
	claimsLookup = "$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP"
)

// Installation writes what keys stand for. It is written anew, with the same keys, when the table of users changes.
// directory is where the server keeps the accounts that it is given; more are users of tests, whose seeds are in
// Keys.Users, too.
func (k Keys) Installation(directory string, more ...natsauth.User) (out Installation, err error) {
	s, err := k.signers()
	if err != nil {
		return out, err
	}
	operator := jwt.NewOperatorClaims(s.public[s.operator])
	operator.Name, operator.SystemAccount = natsauth.Account, s.public[s.system]
	operator.SigningKeys.Add(s.public[s.operatorSigning])
	operatorJWT, err := operator.Encode(s.operator)
	if err != nil {
		return out, errs.Wrap(errs.Internal, err, "sign the operator")
	}
	system := jwt.NewAccountClaims(s.public[s.system])
	system.Name = "SYS"
	systemJWT, err := signed(system, s.operatorSigning)
	if err != nil {
		return out, err
	}
	accountJWT, err := s.installation()
	if err != nil {
		return out, err
	}
	out.Config = config(operatorJWT, directory, s.public[s.system], systemJWT, s.public[s.account], accountJWT)
	if out.Creds, err = k.creds(s, append(natsauth.ServiceUsers(), more...)); err != nil {
		return out, err
	}
	out.Authority, err = k.authority(s)
	return out, err
}

// installation is the account with the services, which shares with those of agents what each has a token for.
func (s signers) installation() (string, error) {
	claims := jwt.NewAccountClaims(s.public[s.account])
	claims.Name = natsauth.Account
	claims.Limits.MemoryStorage, claims.Limits.DiskStorage = jwt.NoLimit, jwt.NoLimit
	claims.SigningKeys.Add(s.public[s.accountSigning])
	seen := map[natsauth.Share]bool{}
	for _, user := range []natsauth.User{natsauth.AgentUser("*", "*"), natsauth.JoinUser("*", "*")} {
		for _, share := range user.Shares() {
			if !seen[share] {
				claims.Exports.Add(&jwt.Export{
					Subject: jwt.Subject(share.Subject), Type: kindOf(share), TokenReq: true,
				})
			}
			seen[share] = true
		}
	}
	return signed(claims, s.operatorSigning)
}

func (k Keys) creds(s signers, users []natsauth.User) (map[string]string, error) {
	all := map[string]string{}
	for _, u := range users {
		creds, err := credsOf(k.Users[u.Name], s.account, u.Name, permissions(u.Permissions))
		if err != nil {
			return nil, errs.New(errs.Invalid, "users/%s: %v", u.Name, err)
		}
		all[u.Name] = creds
	}
	return all, nil
}

// credsOf is the creds file of a user whose JWT does not end.
func credsOf(seed string, account nkeys.KeyPair, name string, p jwt.Permissions) (string, error) {
	pair, err := pairOf(seed, nkeys.PrefixByteUser)
	if err != nil {
		return "", err
	}
	public, err := pair.PublicKey()
	if err != nil {
		return "", errs.Wrap(errs.Internal, err, "read a key of NATS")
	}
	claims := jwt.NewUserClaims(public)
	claims.Name, claims.Permissions = name, p
	token, err := claims.Encode(account)
	if err != nil {
		return "", errs.Wrap(errs.Internal, err, "sign the user %s", name)
	}
	return Creds(token, seed)
}

func (k Keys) authority(s signers) (string, error) {
	system, err := credsOf(k.SystemUser, s.system, systemUser, permissions(natsauth.Permissions{
		Publish: []string{claimsUpdate, claimsLookup}, Subscribe: []string{natsauth.Inbox(systemUser) + ".>"},
	}))
	if err != nil {
		return "", errs.New(errs.Invalid, "systemUser: %v", err)
	}
	text, err := json.Marshal(Authority{
		Operator: k.OperatorSigning, Account: s.public[s.account], AccountSigning: k.AccountSigning, Root: k.Root,
		System: system,
	})
	return string(text), errs.Wrap(errs.Internal, err, "write the authority")
}

// config is the server's, in its own language. What the server is given while it runs is kept in a directory.
func config(operator, directory, system, systemJWT, account, accountJWT string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "operator: %s\nsystem_account: %s\n", operator, system)
	fmt.Fprintf(&b, "resolver {\n  type: full\n  dir: %s\n  allow_delete: false\n  interval: \"2m\"\n}\n",
		strconv.Quote(directory))
	fmt.Fprintf(&b, "resolver_preload {\n  %s: %s\n  %s: %s\n}\n", system, systemJWT, account, accountJWT)
	return b.String()
}
