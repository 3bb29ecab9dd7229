package source

import (
	"crypto/x509"
	"encoding/json"
	"fmt"
)

const (
	// MaxTrustedRoot bounds a trusted root; that of the public instance of Sigstore has 10 KB.
	MaxTrustedRoot = 64 << 10
	// trustedRootType is the only form that is read.
	trustedRootType = "application/vnd.dev.sigstore.trustedroot+json;version=0.1"
)

// trustedRoot is what of a trusted_root.json of Sigstore is checked before it is stored. Who verifies signatures reads
// it whole.
type trustedRoot struct {
	MediaType   string `json:"mediaType"`
	Logs        []any  `json:"tlogs"`
	Authorities []struct {
		Chain certChain `json:"certChain"`
	} `json:"certificateAuthorities"`
	CertificateLogs []any `json:"ctlogs"`
	Timestamps      []struct {
		Chain certChain `json:"certChain"`
	} `json:"timestampAuthorities"`
}

type certChain struct {
	Certificates []struct {
		Raw []byte `json:"rawBytes"`
	} `json:"certificates"`
}

// check says what is wrong with a chain, "" for nothing.
func (ch certChain) check() string {
	if len(ch.Certificates) == 0 {
		return "has no certificates"
	}
	for i, one := range ch.Certificates {
		if _, err := x509.ParseCertificate(one.Raw); err != nil {
			return fmt.Sprintf("has a certificate %d that cannot be read", i+1)
		}
	}
	return ""
}

// trustedRoot checks that what a policy demands can be verified by its trusted root.
func (c *checker) trustedRoot(at string, p *SignaturePolicy) {
	logs, keyless := p.Logs(len(p.Identities) > 0), len(p.Identities) > 0
	needed := keyless || logs > 0 || p.SignedTimestamps > 0
	switch {
	case p.TrustedRoot == "" && needed:
		c.addf(at, RuleRequired, "identities, entries of logs and timestamps are verified by a trusted root: give the "+
			"trusted_root.json of the Sigstore instance, which cosign trusted-root create writes")
		return
	case p.TrustedRoot == "":
		return
	case !needed:
		c.addf(at, RuleTrustedRoot, "the policy uses no trusted root: it names no identities and demands no logEntries "+
			"or signedTimestamps")
		return
	case len(p.TrustedRoot) > MaxTrustedRoot:
		c.addf(at, RuleMaxLength, "the trusted root has %d bytes, %d are allowed", len(p.TrustedRoot), MaxTrustedRoot)
		return
	}
	var r trustedRoot
	if err := json.Unmarshal([]byte(p.TrustedRoot), &r); err != nil || r.MediaType != trustedRootType {
		c.addf(at, RuleTrustedRoot, "this is no trusted root of Sigstore: want JSON with mediaType %s", trustedRootType)
		return
	}
	for _, part := range []struct {
		name       string
		has, wants int
	}{
		{"certificateAuthorities", len(r.Authorities), or(nil, keyless)},
		{"tlogs", len(r.Logs), logs},
		{"ctlogs", len(r.CertificateLogs), map[bool]int{true: p.LogsOfCertificates()}[keyless]},
		{"timestampAuthorities", len(r.Timestamps), p.SignedTimestamps},
	} {
		if part.has < part.wants {
			c.addf(at, RuleTrustedRoot, "the trusted root has %d %s, the policy needs %d of them", part.has, part.name,
				part.wants)
		}
	}
	for i, a := range r.Authorities {
		if why := a.Chain.check(); why != "" {
			c.addf(at, RuleTrustedRoot, "certificate authority %d of the trusted root %s", i+1, why)
		}
	}
	for i, a := range r.Timestamps {
		if why := a.Chain.check(); why != "" {
			c.addf(at, RuleTrustedRoot, "timestamp authority %d of the trusted root %s", i+1, why)
		}
	}
}
