package cataloghook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
)

func TestSecretsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, s := range map[string]string{
		"one":             cataloghook.Secret("key", "t", "a", []byte("n")),
		"another key":     cataloghook.Secret("yek", "t", "a", []byte("n")),
		"another tenant":  cataloghook.Secret("key", "u", "a", []byte("n")),
		"another catalog": cataloghook.Secret("key", "t", "b", []byte("n")),
		"another nonce":   cataloghook.Secret("key", "t", "a", []byte("m")),
		"moved parts":     cataloghook.Secret("key", "ta", "", []byte("n")),
	} {
		if other, ok := seen[s]; ok {
			t.Errorf("%s and %s have one secret", name, other)
		}
		seen[s] = name
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	const secret, body = "chh_secret", `{"ref": "main"}`
	sign := func(key, text string) string {
		mac := hmac.New(sha256.New, []byte(key))
		mac.Write([]byte(text))
		return "sha256=" + hex.EncodeToString(mac.Sum(nil))
	}
	for name, c := range map[string]struct {
		proof cataloghook.Proof
		want  bool
	}{
		"the token":                     {cataloghook.Proof{Token: secret}, true},
		"another token":                 {cataloghook.Proof{Token: secret + "x"}, false},
		"the signature":                 {cataloghook.Proof{Signature: sign(secret, body)}, true},
		"of another body":               {cataloghook.Proof{Signature: sign(secret, body+" ")}, false},
		"with another key":              {cataloghook.Proof{Signature: sign("x", body)}, false},
		"without its name":              {cataloghook.Proof{Signature: sign(secret, body)[len("sha256="):]}, false},
		"half of it":                    {cataloghook.Proof{Signature: sign(secret, body)[:20]}, false},
		"both":                          {cataloghook.Proof{Token: secret, Signature: sign(secret, body)}, true},
		"a token and a wrong signature": {cataloghook.Proof{Token: secret, Signature: sign("x", body)}, false},
		"a wrong token and a signature": {cataloghook.Proof{Token: "x", Signature: sign(secret, body)}, false},
		"nothing":                       {cataloghook.Proof{}, false},
	} {
		if got := c.proof.Holds(secret, []byte(body)); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
