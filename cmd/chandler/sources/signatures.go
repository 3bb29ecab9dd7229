package sources

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// unset is a number that was not given.
const unset = -1

// signatureFlags are the flags of a signature policy.
type signatureFlags struct {
	keys, identities, predicates, repositories []string

	root                              string
	logs, certificateLogs, timestamps int
	match                             bool
}

func (f *signatureFlags) register(set *pflag.FlagSet) {
	set.StringSliceVar(&f.keys, "signature-key", nil,
		"file with a public key of cosign: the catalog image and its bundle images must be signed with it; several with "+
			"commas, one of which is enough")
	set.StringArrayVar(&f.identities, "signature-identity", nil,
		"issuer=subject of certificates that may sign (keyless), instead of a key; ~ before either makes it a regular "+
			"expression for the whole; may be repeated")
	set.StringVar(&f.root, "trusted-root", "",
		"file trusted_root.json of the Sigstore instance: what certificates, logs and timestamps are verified by")
	set.IntVar(&f.logs, "signature-logs", unset,
		"in how many transparency logs a signature must be (default: 1 for identities, 0 for keys)")
	set.IntVar(&f.certificateLogs, "certificate-logs", unset,
		"how many certificate transparency logs must have seen the certificate of an identity (default 1)")
	set.IntVar(&f.timestamps, "signature-timestamps", 0, "how many timestamp authorities must have dated a signature")
	set.StringSliceVar(&f.predicates, "signature-predicate", nil,
		"predicate type of attestations that count as a signature; several with commas")
	set.BoolVar(&f.match, "match-repository", false,
		"the repository that was signed must be the one by which the image is named")
	set.StringSliceVar(&f.repositories, "signature-repository", nil,
		"the repository that was signed must be this one, or with /* below it; several with commas")
}

// policy is what the flags say, nil where they say nothing.
func (f *signatureFlags) policy() (*model.CatalogSignatures, error) {
	out := &model.CatalogSignatures{
		SignedTimestamps: f.timestamps, PredicateTypes: f.predicates, MatchRepository: f.match,
		Repositories: f.repositories,
	}
	for _, file := range f.keys {
		key, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("--signature-key: %w", err)
		}
		out.Keys = append(out.Keys, string(key))
	}
	for _, text := range f.identities {
		id, err := identity(text)
		if err != nil {
			return nil, err
		}
		out.Identities = append(out.Identities, id)
	}
	if f.root != "" {
		text, err := os.ReadFile(f.root)
		if err != nil {
			return nil, fmt.Errorf("--trusted-root: %w", err)
		}
		out.TrustedRoot = string(text)
	}
	if f.logs != unset {
		out.LogEntries = &f.logs
	}
	if f.certificateLogs != unset {
		out.CertificateLogs = &f.certificateLogs
	}
	if len(out.Keys)+len(out.Identities) > 0 {
		return out, nil
	}
	if f.root != "" || out.LogEntries != nil || out.CertificateLogs != nil || f.timestamps != 0 || f.match ||
		len(f.predicates)+len(f.repositories) > 0 {
		return nil, fmt.Errorf("a signature policy needs --signature-key or --signature-identity, which say who must sign")
	}
	return nil, nil //nolint:nilnil // no policy
}

// identity reads issuer=subject. An issuer is an address, which may have a = in its query only.
func identity(text string) (id model.CatalogIdentity, err error) {
	issuer, subject, ok := strings.Cut(text, "=")
	if !ok || strings.TrimPrefix(issuer, "~") == "" || strings.TrimPrefix(subject, "~") == "" {
		return id, fmt.Errorf("--signature-identity %q: want issuer=subject, such as "+
			"https://token.example.com=~https://forge.example.com/team/repo/.*", text)
	}
	if re, is := strings.CutPrefix(issuer, "~"); is {
		id.IssuerRegexp = re
	} else {
		id.Issuer = issuer
	}
	if re, is := strings.CutPrefix(subject, "~"); is {
		id.SubjectRegexp = re
	} else {
		id.Subject = subject
	}
	return id, nil
}
