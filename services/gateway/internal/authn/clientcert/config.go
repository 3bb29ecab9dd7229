// Package clientcert tells which machine shows a certificate that an authority of the settings signed. The common name
// is the machine, as with Kubernetes, and organizations are its groups. Files of authorities, and of the certificates
// that they have revoked, are read again whenever they change, and each request is checked anew: what an authority no
// longer vouches for ends on connections that are open, too.
package clientcert

import (
	"cmp"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn/vouch"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const (
	// maxAuthorities bounds the authorities of an installation: a certificate may be tried with each.
	maxAuthorities = 20
	// maxCertificates bounds the certificates of one authority: those of its keys that are in use, and of the next
	// ones.
	maxCertificates = 20
	// maxRevocationLists bounds the lists of one authority: one for each certificate that signs.
	maxRevocationLists = 2 * maxCertificates
)

// setting is the setting that names the file of authorities.
const setting = "client-authorities"

// Authority signs certificates of machines, as the file of authorities has it.
type Authority struct {
	Name string `json:"name"`
	// CAFile are its certificates, in PEM.
	CAFile string `json:"caFile"`
	// RevocationFile are lists of certificates that it has revoked, in PEM; "" where nobody is asked.
	RevocationFile string `json:"revocationFile,omitempty"`
	// Tenant is that of every machine that it vouches for.
	Tenant string `json:"tenant,omitempty"`
	// GroupsPrefix goes before organizations in bindings; "name:" where it is not given.
	GroupsPrefix *string `json:"groupsPrefix,omitempty"`
}

// ReadFile reads the file of authorities; an empty path is none.
func ReadFile(path string) ([]Authority, error) {
	if path == "" {
		return nil, nil
	}
	var file struct {
		Authorities []Authority `json:"authorities"`
	}
	if err := vouch.ReadFile(setting, path, &file); err != nil {
		return nil, err
	}
	list := file.Authorities
	if len(list) == 0 || len(list) > maxAuthorities {
		return nil, errs.New(errs.Invalid, "setting %s: %s has %d authorities; give 1 to %d", setting, path, len(list),
			maxAuthorities)
	}
	var v rule.Violations
	for i := range list {
		a := &list[i]
		a.Tenant = cmp.Or(a.Tenant, events.DefaultTenant)
		if a.GroupsPrefix == nil {
			own := a.Name + ":"
			a.GroupsPrefix = &own
		}
		at := place(path, i)
		v.DNSLabelName(at+".name", a.Name)
		v.DNSLabelName(at+".tenant", a.Tenant)
		if a.CAFile == "" {
			v.Addf(at+".caFile", rule.Required, "%s.caFile: name the file with the certificates of the authority", at)
		}
	}
	vouch.Check(&v, Sources(path, list))
	return list, v.Err()
}

func place(path string, i int) string { return fmt.Sprintf("%s: authorities[%d]", path, i) }

// Sources are authorities of a file as those who vouch for somebody.
func Sources(path string, list []Authority) (out []vouch.Source) {
	for i, a := range list {
		out = append(out, vouch.Source{At: place(path, i), Name: a.Name, Tenant: a.Tenant, Prefix: *a.GroupsPrefix})
	}
	return out
}

// blocks are the blocks of one kind in a text, which has no others. Text between them says what they are, for people.
func blocks(kind, text string, most int) (list [][]byte, err error) {
	for rest := []byte(text); ; {
		var b *pem.Block
		if b, rest = pem.Decode(rest); b == nil {
			if len(list) == 0 || strings.Contains(string(rest), "-----BEGIN") {
				return nil, errs.New(errs.Invalid, "want blocks %s in PEM, and nothing else", kind)
			}
			return list, nil
		}
		if b.Type != kind {
			return nil, errs.New(errs.Invalid, "there is a block %q, and %s is wanted", b.Type, kind)
		}
		if list = append(list, b.Bytes); len(list) > most {
			return nil, errs.New(errs.Invalid, "there are more than %d blocks %s", most, kind)
		}
	}
}
