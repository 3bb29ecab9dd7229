package kinds

import (
	"fmt"
	"strings"

	"github.com/chandler-fleet/chandler/cmd/chandler/cli/printer"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// describeSignatures writes who must have signed the images of a catalog, and what must vouch for it; defaults are
// written out, since who reads wants to know what holds.
func describeSignatures(p *printer.Page, s *model.CatalogSignatures) {
	if s == nil {
		return
	}
	var who []string
	if n := len(s.Keys); n > 0 {
		who = append(who, printer.Plural(n, "key"))
	}
	for _, id := range s.Identities {
		who = append(who, identityText(id))
	}
	p.Line("Signed by", strings.Join(who, ", or "))
	var wants []string
	number := func(n *int, standard int, what string) {
		if n != nil {
			standard = *n
		}
		if standard > 0 {
			wants = append(wants, fmt.Sprintf("%d %s", standard, what))
		}
	}
	keyless := 0
	if len(s.Identities) > 0 {
		keyless = 1
		number(s.CertificateLogs, keyless, "of the logs of certificates")
	}
	number(s.LogEntries, keyless, "of the transparency logs")
	number(&s.SignedTimestamps, 0, "of the timestamp authorities")
	p.Line("Vouched for by", strings.Join(wants, ", "))
	names := s.Repositories
	if s.MatchRepository {
		names = append([]string{"the name of the image"}, names...)
	}
	p.Line("Signed names", strings.Join(names, ", "))
	p.Line("Attestations that count", strings.Join(s.PredicateTypes, ", "))
}

func identityText(id model.CatalogIdentity) string {
	one := func(value, re string) string {
		if re != "" {
			return "/" + re + "/"
		}
		return value
	}
	return one(id.Subject, id.SubjectRegexp) + " of " + one(id.Issuer, id.IssuerRegexp)
}
