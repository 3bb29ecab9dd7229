package model

import "github.com/chandler-fleet/chandler/libs/source"

// CatalogSignatures say who must have signed a catalog image and every bundle image that it names. One key or identity
// is enough; all else must be true of its signature.
type CatalogSignatures struct {
	Keys             []string          `json:"keys,omitempty" maxItems:"16" doc:"Public keys in PEM, as cosign public-key writes them"`
	Identities       []CatalogIdentity `json:"identities,omitempty" maxItems:"16" doc:"Who may sign with a certificate (keyless); needs trustedRoot"`
	TrustedRoot      string            `json:"trustedRoot,omitempty" maxLength:"65536" doc:"trusted_root.json of the Sigstore instance, as cosign trusted-root create writes it; nothing is asked of a network"`
	LogEntries       *int              `json:"logEntries,omitempty" minimum:"0" maximum:"8" doc:"In how many transparency logs of trustedRoot the signature must be; without it 1 for identities and 0 for keys"`
	CertificateLogs  *int              `json:"certificateLogs,omitempty" minimum:"0" maximum:"8" doc:"How many certificate transparency logs of trustedRoot must have seen the certificate of an identity; 1 without it"`
	SignedTimestamps int               `json:"signedTimestamps,omitempty" minimum:"0" maximum:"8" doc:"How many timestamp authorities of trustedRoot must have dated the signature"`
	PredicateTypes   []string          `json:"predicateTypes,omitempty" maxItems:"32" doc:"Attestations of these types count as signatures, beside those of cosign sign"`
	MatchRepository  bool              `json:"matchRepository,omitempty" doc:"The repository that was signed must be the one by which the image is named, whichever mirror it comes from"`
	Repositories     []string          `json:"repositories,omitempty" maxItems:"32" doc:"The repository that was signed must be one of these; registry/path/* is all below"`
}

// CatalogIdentity is who a certificate must be for.
type CatalogIdentity struct {
	Issuer        string `json:"issuer,omitempty" maxLength:"1024" doc:"OpenID Connect issuer"`
	IssuerRegexp  string `json:"issuerRegexp,omitempty" maxLength:"1024" doc:"Instead of issuer: a regular expression (RE2) for the whole of it"`
	Subject       string `json:"subject,omitempty" maxLength:"1024" doc:"Mail address or URI in the certificate"`
	SubjectRegexp string `json:"subjectRegexp,omitempty" maxLength:"1024" doc:"Instead of subject: a regular expression (RE2) for the whole of it"`
}

func (s *CatalogSignatures) policy() *source.SignaturePolicy {
	if s == nil {
		return nil
	}
	out := &source.SignaturePolicy{
		Keys: s.Keys, TrustedRoot: s.TrustedRoot, LogEntries: s.LogEntries, CertificateLogs: s.CertificateLogs,
		SignedTimestamps: s.SignedTimestamps, PredicateTypes: s.PredicateTypes, MatchRepository: s.MatchRepository,
		Repositories: s.Repositories,
	}
	for _, id := range s.Identities {
		out.Identities = append(out.Identities, source.SignerIdentity(id))
	}
	return out
}

func signaturesOf(p *source.SignaturePolicy) *CatalogSignatures {
	if p == nil {
		return nil
	}
	out := &CatalogSignatures{
		Keys: p.Keys, TrustedRoot: p.TrustedRoot, LogEntries: p.LogEntries, CertificateLogs: p.CertificateLogs,
		SignedTimestamps: p.SignedTimestamps, PredicateTypes: p.PredicateTypes, MatchRepository: p.MatchRepository,
		Repositories: p.Repositories,
	}
	for _, id := range p.Identities {
		out.Identities = append(out.Identities, CatalogIdentity(id))
	}
	return out
}
