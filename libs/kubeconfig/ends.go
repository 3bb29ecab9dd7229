package kubeconfig

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"
)

// Ends is when the credential ends, as it says itself: its token, or the certificate of its client, whichever is
// sooner. The zero value is one that does not say; only the API server knows whether it takes a credential.
func (c Config) Ends() time.Time {
	if c.user == nil {
		return time.Time{}
	}
	token, certificate := tokenEnds(c.user.Token), certificateEnds(c.user.ClientCertificateData)
	if token.IsZero() || !certificate.IsZero() && certificate.Before(token) {
		return certificate
	}
	return token
}

// tokenEnds reads the claim exp of a token that is a JWT.
func tokenEnds(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires float64 `json:"exp"` // RFC 7519 allows fractions
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires < 1 || claims.Expires > latest {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0).UTC()
}

// latest is the last second that RFC 3339 can write, at the end of the year 9999.
const latest = 253402300799

func certificateEnds(data []byte) time.Time {
	block, _ := pem.Decode(data)
	if block == nil {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil || leaf.NotAfter.Unix() > latest {
		return time.Time{}
	}
	return leaf.NotAfter.UTC()
}
