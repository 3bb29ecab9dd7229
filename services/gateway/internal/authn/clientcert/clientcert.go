package clientcert

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"math/big"
	"slices"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/renewed"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/vouch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxShown bounds the certificates that a machine shows: its own, and those that lead to its authority. A stranger
// could show so many that each request costs a hundred signatures for each authority.
const maxShown = 8

// issuer begins what stands for an authority where a provider has its address. No address begins so: a machine is never
// taken for a person of a provider, whatever the two are called.
const issuer = "certificate:"

// Verifier checks the certificates of all authorities.
type Verifier struct {
	list []*authority
	now  func() time.Time
}

type authority struct {
	Authority
	trusts *renewed.Value[trust]
}

// trust is what the files of an authority say.
type trust struct {
	roots *x509.CertPool
	// lists are those of revoked certificates; nil where nobody is asked.
	lists []*x509.RevocationList
}

// New makes a verifier of what the files say now. Trouble with newer ones is logged, and those before stay.
func New(list []Authority, now func() time.Time, log *slog.Logger) (*Verifier, error) {
	v := &Verifier{now: now}
	for _, a := range list {
		trouble := func(err error) {
			log.Error("newer files of an authority of client certificates cannot be used; those before stay", "authority",
				a.Name, "error", err)
		}
		var files []renewed.Setting
		for _, path := range []string{a.CAFile, a.RevocationFile} {
			if path == "" {
				continue
			}
			raw, err := renewed.Read(path)
			if err != nil {
				return nil, errs.Wrap(errs.Invalid, err, "setting %s: authority %s", setting, a.Name)
			}
			files = append(files, renewed.Setting{Text: string(raw), File: path})
		}
		trusts, err := renewed.New(parse, trouble, files...)
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "setting %s: authority %s", setting, a.Name)
		}
		v.list = append(v.list, &authority{a, trusts})
	}
	return v, nil
}

// parse reads the certificates of an authority, and lists of revoked ones where a second text has them.
func parse(texts []string) (t trust, err error) {
	raw, err := blocks("CERTIFICATE", texts[0], maxCertificates)
	if err != nil {
		return t, errs.Wrap(errs.Invalid, err, "caFile")
	}
	t.roots = x509.NewCertPool()
	for _, one := range raw {
		c, err := x509.ParseCertificate(one)
		switch {
		case err != nil:
			return t, errs.Wrap(errs.Invalid, err, "caFile")
		case !c.IsCA:
			return t, errs.New(errs.Invalid, "caFile: the certificate of %q is none of an authority", c.Subject)
		}
		t.roots.AddCert(c)
	}
	if len(texts) == 1 {
		return t, nil
	}
	if raw, err = blocks("X509 CRL", texts[1], maxRevocationLists); err != nil {
		return t, errs.Wrap(errs.Invalid, err, "revocationFile")
	}
	for _, one := range raw {
		l, err := x509.ParseRevocationList(one)
		if err != nil {
			return t, errs.Wrap(errs.Invalid, err, "revocationFile")
		}
		if err := whole(l); err != nil {
			return t, err
		}
		t.lists = append(t.lists, l)
	}
	return t, nil
}

// Verify says which machine shows a certificate, with those that lead to an authority behind it. That it has the key,
// TLS has seen to. An error of kind errs.Unauthenticated says why it lets nobody in.
func (v *Verifier) Verify(shown []*x509.Certificate) (model.Person, error) {
	if len(shown) > maxShown {
		return model.Person{}, refused("%d certificates are shown, %d are allowed", len(shown), maxShown)
	}
	leaf, between := shown[0], x509.NewCertPool()
	for _, c := range shown[1:] {
		between.AddCert(c)
	}
	if !slices.Contains(leaf.ExtKeyUsage, x509.ExtKeyUsageClientAuth) {
		return model.Person{}, refused("it is not for clients (extended key usage clientAuth)")
	}
	now := v.now()
	for _, a := range v.list {
		trusts := a.trusts.Get()
		chains, err := leaf.Verify(x509.VerifyOptions{
			Roots: trusts.roots, Intermediates: between, CurrentTime: now,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		})
		if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
			continue
		}
		if err != nil {
			return model.Person{}, invalid(leaf, now, err)
		}
		if err := trusts.revoked(chains[0], now); err != nil {
			return model.Person{}, err
		}
		return a.machine(chains[0])
	}
	return model.Person{}, refused("no authority that this installation knows has signed it")
}

func invalid(leaf *x509.Certificate, now time.Time, err error) error {
	switch {
	case !now.Before(leaf.NotAfter):
		return refused("it ended at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(leaf.NotBefore):
		return refused("it is not good before %s", leaf.NotBefore.UTC().Format(time.RFC3339))
	}
	return refused("%v", err)
}

// revoked refuses a certificate of a chain that is on a list. Where lists are kept, an issuer without one that is good
// now could have revoked anything.
func (t trust) revoked(chain []*x509.Certificate, now time.Time) error {
	if t.lists == nil {
		return nil
	}
	for i, c := range chain[:len(chain)-1] {
		by, known := chain[i+1], false
		for _, l := range t.lists {
			if l.CheckSignatureFrom(by) != nil || !now.Before(l.NextUpdate) {
				continue
			}
			known = true
			if has(l, c.SerialNumber) {
				return refused("it was revoked by its authority, or one above it was")
			}
		}
		if !known {
			return refused("there is no list of revoked certificates of %q that is good now", by.Subject)
		}
	}
	return nil
}

// whole refuses a list that names some of the revoked certificates alone: what changed since another one, or those
// of one kind. It says so by a critical extension (RFC 5280, 5.2), and what it does not name could be revoked all
// the same.
func whole(l *x509.RevocationList) error {
	for _, e := range l.Extensions {
		if e.Critical {
			return errs.New(errs.Invalid, "revocationFile: the list of %q is for some certificates alone (critical extension %s): "+
				"give one of all", l.Issuer, e.Id)
		}
	}
	return nil
}

func has(l *x509.RevocationList, serial *big.Int) bool {
	return slices.ContainsFunc(l.RevokedCertificateEntries, func(e x509.RevocationListEntry) bool {
		return e.SerialNumber.Cmp(serial) == 0
	})
}

// machine takes out of a certificate that is good what counts.
func (a *authority) machine(chain []*x509.Certificate) (model.Person, error) {
	leaf := chain[0]
	name, groups := leaf.Subject.CommonName, leaf.Subject.Organization
	switch {
	case name == "" || len(name) > vouch.MaxSubject:
		return model.Person{}, refused("it names no machine (common name), or with more than %d characters",
			vouch.MaxSubject)
	case len(groups) > vouch.MaxGroups:
		return model.Person{}, refused("it has %d groups (organizations), %d are allowed", len(groups), vouch.MaxGroups)
	}
	out := model.Person{
		Tenant: a.Tenant, Kind: access.KindServiceAccount, Issuer: issuer + a.Name, Subject: name, Provider: a.Name,
		Name: vouch.Shown(name), Groups: vouch.Groups(*a.GroupsPrefix, groups), Until: leaf.NotAfter,
	}
	for _, c := range chain {
		if c.NotAfter.Before(out.Until) {
			out.Until = c.NotAfter
		}
	}
	return out, nil
}

// Claims is of whom a certificate says it is, which nobody has checked.
func Claims(shown []*x509.Certificate) string {
	return issuer + string(shown[0].RawIssuer) + "\x00" + string(shown[0].RawSubject)
}

func refused(format string, args ...any) error {
	return errs.New(errs.Unauthenticated, "the client certificate is refused: "+format, args...)
}
