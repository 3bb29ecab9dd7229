package model

import "github.com/chandler-fleet/chandler/libs/source"

// CatalogSignatures say with whose key a catalog image, and every bundle image that it names, must be signed.
type CatalogSignatures struct {
	Keys []string `json:"keys" minItems:"1" maxItems:"16" doc:"Public keys in PEM, as cosign public-key writes them; one of them is enough"`
}

func (s *CatalogSignatures) policy() *source.SignaturePolicy {
	if s == nil {
		return nil
	}
	return &source.SignaturePolicy{Keys: s.Keys}
}

func signaturesOf(p *source.SignaturePolicy) *CatalogSignatures {
	if p == nil {
		return nil
	}
	return &CatalogSignatures{Keys: p.Keys}
}
