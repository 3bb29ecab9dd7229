package signature_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/signature"
	"github.com/chandler-fleet/chandler/libs/source/signature/signaturetest"
)

const (
	issuer  = "https://issuer.test"
	subject = "https://forge.test/ops/fleet/.ci/release.yaml@refs/heads/main"
	name    = "registry.test/ops/fleet"
)

var image = signature.Image{Digest: "sha256:" + strings.Repeat("ab", sha256.Size), Name: name}

// past runs a function in the year 2000.
func past(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// TestSignatures: a signature counts if it satisfies what the policy says, in both forms; each row that is refused says
// which rule it breaks. All were made in the year 2000 by certificates of ten minutes: the answer is the same today.
func TestSignatures(t *testing.T) {
	t.Parallel()
	type row struct {
		signing signaturetest.Signing
		policy  source.SignaturePolicy
		refused string // part of the reason; "" is taken
		bundles bool   // the row is about bundles alone
	}
	rows := map[string]row{}
	type stored struct {
		bundle, payload []byte
		annotations     map[string]string
	}
	made := map[string]stored{}
	past(t, func(t *testing.T) {
		t.Helper()
		ours, theirs := signaturetest.New(t), signaturetest.New(t)
		key, stranger := signaturetest.NewKey(t), signaturetest.NewKey(t)
		trusted := ours.TrustedRoot()
		keyless := signaturetest.Signing{Issuer: issuer, Subject: subject, Log: ours}
		people := source.SignaturePolicy{
			Identities: []source.SignerIdentity{{Issuer: issuer, Subject: subject}}, TrustedRoot: trusted,
		}
		keys := source.SignaturePolicy{Keys: []string{signaturetest.Public(t, key)}}
		with := func(p source.SignaturePolicy, change func(p *source.SignaturePolicy)) source.SignaturePolicy {
			change(&p)
			return p
		}
		as := func(s signaturetest.Signing, change func(s *signaturetest.Signing)) signaturetest.Signing {
			change(&s)
			return s
		}
		matching := func(issuer, subject string) source.SignaturePolicy {
			return with(people, func(p *source.SignaturePolicy) {
				p.Identities = []source.SignerIdentity{{IssuerRegexp: issuer, SubjectRegexp: subject}}
			})
		}
		below := func(repository string) source.SignaturePolicy {
			return with(keys, func(p *source.SignaturePolicy) { p.Repositories = []string{repository} })
		}
		none, one := new(int), new(1)
		dated := with(people, func(p *source.SignaturePolicy) { p.LogEntries, p.SignedTimestamps = none, 1 })
		logged := with(keys, func(p *source.SignaturePolicy) { p.LogEntries, p.TrustedRoot = one, trusted })
		rows = map[string]row{
			"keyless": {signing: keyless, policy: people},
			"keyless, by expression": {
				signing: keyless,
				policy:  matching(`https://issuer\.test`, `https://forge\.test/ops/.*`),
			},
			"a key":           {signing: signaturetest.Signing{Key: key}, policy: keys},
			"a key and a log": {signing: signaturetest.Signing{Key: key, Log: ours}, policy: logged},
			"a timestamp, no log": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Log, s.Timestamped = nil, true }),
				policy:  dated,
			},
			"a private authority": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Unseen = true }),
				policy:  with(people, func(p *source.SignaturePolicy) { p.CertificateLogs = none }),
			},
			"of another image": {
				signing: as(keyless, func(s *signaturetest.Signing) {
					s.Digest = "sha256:" + strings.Repeat("cd", 32)
				}),
				policy: people,
			},
			"another issuer": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Issuer = "https://issuer.evil.test" }),
				policy:  people, refused: "expected issuer value",
			},
			"another subject": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Subject = "https://forge.test/evil" }),
				policy:  people, refused: "expected SAN value",
			},
			"a subject around the expression": {
				signing: as(keyless, func(s *signaturetest.Signing) {
					s.Subject = "https://evil.test/https://forge.test/ops/fleet/evil"
				}),
				policy: matching(`https://issuer.test`, `https://forge.test/ops/fleet`), refused: "to match regex",
			},
			"an issuer around the expression": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Issuer = issuer + ".evil.example" }),
				policy:  matching(`https://issuer.test`, `.*`), refused: "to match regex",
			},
			"an alternative that ends the expression early": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Subject = "https://forge.test/a-evil" }),
				policy:  matching(`https://issuer.test`, `https://forge.test/a|https://forge.test/b`),
				refused: "to match regex",
			},
			"a certificate of another authority": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Log = ours }),
				policy:  people, refused: "leaf certificate verification failed",
			},
			"a certificate that no log has seen": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Unseen = true }),
				policy:  people, refused: "signed certificate timestamp",
			},
			"in the log of strangers": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Log = theirs }),
				policy:  people, refused: "not enough verified log entries",
			},
			"in no log": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Log = nil }),
				policy:  people, refused: "not enough verified log entries",
			},
			"certificate that had expired": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.After = 20 * time.Minute }),
				policy:  people, refused: "outside certificate validity",
			},
			"a certificate without a time": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Log = nil }),
				policy:  dated, refused: "threshold not met for verified signed timestamps",
			},
			"a key that is not in the log": {
				signing: signaturetest.Signing{Key: key}, policy: logged, refused: "not enough verified log entries",
			},
			"a key in the log of strangers": {
				signing: signaturetest.Signing{Key: key, Log: theirs}, policy: logged,
				refused: "not enough verified log entries",
			},
			"the key of a stranger": {
				signing: signaturetest.Signing{Key: stranger}, policy: keys, refused: "none of the keys",
			},
			"the key of a stranger in the log": {
				signing: signaturetest.Signing{Key: stranger, Log: ours}, policy: logged, refused: "none of the keys",
			},
			"a certificate where keys are wanted": {signing: keyless, policy: keys, refused: "keys alone"},
			"a key where people are wanted": {
				signing: signaturetest.Signing{Key: key, Log: ours}, policy: people,
				refused: "identities of certificates alone",
			},
			"the list of its parts": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Predicate = "https://spdx.dev/Document" }),
				policy:  people, refused: "https://spdx.dev/Document", bundles: true,
			},
			"an attestation that the policy counts": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Predicate = "https://slsa.dev/provenance/v1" }),
				policy: with(people, func(p *source.SignaturePolicy) {
					p.PredicateTypes = []string{"https://slsa.dev/provenance/v1"}
				}), bundles: true,
			},
			"the name": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Name = name }),
				policy:  with(people, func(p *source.SignaturePolicy) { p.MatchRepository = true }),
			},
			"the name of another repository": {
				signing: as(keyless, func(s *signaturetest.Signing) { s.Name = "registry.test/ops/draft" }),
				policy:  with(people, func(p *source.SignaturePolicy) { p.MatchRepository = true }),
				refused: "matchRepository",
			},
			"no name": {
				signing: keyless, policy: with(people, func(p *source.SignaturePolicy) { p.MatchRepository = true }),
				refused: "does not say which repository",
			},
			"a name with a tag, below a path": {
				signing: signaturetest.Signing{Key: key, Name: "registry.test/ops/fleet:v1"},
				policy:  below("registry.test/ops/*"),
			},
			"the short name of the hub of Docker": {
				signing: signaturetest.Signing{Key: key, Name: "index.docker.io/ops/fleet"},
				policy:  below("docker.io/ops/fleet"),
			},
			"a name beside the path": {
				signing: signaturetest.Signing{Key: key, Name: "registry.test/opsx/fleet"},
				policy:  below("registry.test/ops/*"),
				refused: "repositories: ",
			},
		}
		// Those that wait come last: what vouches for the others does not grow old.
		for _, what := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
			return cmp.Compare(rows[a].signing.After, rows[b].signing.After)
		}) {
			r, by := rows[what], ours
			s := r.signing
			s.Digest = cmp.Or(s.Digest, image.Digest)
			if what == "a certificate of another authority" {
				by = theirs
			}
			var m stored
			m.bundle = by.Bundle(s)
			if !r.bundles {
				m.payload, m.annotations = by.Payload(s)
			}
			made[what] = m
		}
	})
	check := func(t *testing.T, r row, err error) {
		t.Helper()
		switch {
		case r.signing.Digest != "" && err == nil:
			t.Error("it is taken")
		case r.refused == "" && r.signing.Digest == "" && err != nil:
			t.Error(err)
		case r.refused != "" && (err == nil || !strings.Contains(err.Error(), r.refused)):
			t.Errorf("%v; want %s", err, r.refused)
		}
	}
	for what, r := range rows {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			v, err := signature.New(r.policy)
			if err != nil {
				t.Fatal(err)
			}
			check(t, r, v.Bundle(image, made[what].bundle))
			if !r.bundles {
				check(t, r, v.Payload(image, made[what].payload, made[what].annotations))
			}
		})
	}
}

// TestHostileBundles: what is no bundle, or one whose parts were exchanged, is refused, and what it says of itself
// stays one bounded line.
func TestHostileBundles(t *testing.T) {
	t.Parallel()
	key, in := signaturetest.NewKey(t), signaturetest.New(t)
	v, err := signature.New(source.SignaturePolicy{Keys: []string{signaturetest.Public(t, key)}})
	if err != nil {
		t.Fatal(err)
	}
	good := in.Bundle(signaturetest.Signing{Key: key, Digest: image.Digest})
	if err := v.Bundle(image, good); err != nil {
		t.Fatal(err)
	}
	changed := func(change func(b map[string]any)) []byte {
		var b map[string]any
		if err := json.Unmarshal(good, &b); err != nil {
			t.Fatal(err)
		}
		change(b)
		raw, err := json.Marshal(b)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	sum, err := hex.DecodeString(strings.TrimPrefix(image.Digest, "sha256:"))
	if err != nil {
		t.Fatal(err)
	}
	for what, raw := range map[string][]byte{
		"nothing": nil, "no object": []byte(`[]`), "an empty object": []byte(`{}`), "half of it": good[:len(good)/2],
		"a later version": changed(func(b map[string]any) {
			b["mediaType"] = "application/vnd.dev.sigstore.bundle.v0.4+json"
		}),
		"no statement": changed(func(b map[string]any) {
			b["dsseEnvelope"].(map[string]any)["payloadType"] = "text/plain"
		}),
		"two signatures": changed(func(b map[string]any) {
			e := b["dsseEnvelope"].(map[string]any)
			e["signatures"] = append(e["signatures"].([]any), e["signatures"].([]any)...)
		}),
		"a bare signature": changed(func(b map[string]any) {
			delete(b, "dsseEnvelope")
			b["messageSignature"] = map[string]any{
				"messageDigest": map[string]any{"algorithm": "SHA2_256", "digest": sum}, "signature": sum,
			}
		}),
		"a type with escapes": in.Bundle(signaturetest.Signing{
			Key: key, Digest: image.Digest, Predicate: "x:\x1b[31m\n" + strings.Repeat("y", 5000),
		}),
	} {
		switch err := v.Bundle(image, raw); {
		case err == nil:
			t.Errorf("%s is taken", what)
		case len(err.Error()) > 1000 || strings.ContainsAny(err.Error(), "\x1b\n"):
			t.Errorf("%s: %q", what, err)
		}
	}
}

// TestPoliciesThatCannotBeUsed are errors of the settings.
func TestPoliciesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	key := signaturetest.Public(t, signaturetest.NewKey(t))
	people := []source.SignerIdentity{{Issuer: issuer, Subject: subject}}
	for what, p := range map[string]source.SignaturePolicy{
		"nobody":                        {},
		"a key that is none":            {Keys: []string{"x"}},
		"identities without a root":     {Identities: people},
		"a root that is none":           {Keys: []string{key}, TrustedRoot: "{}"},
		"an expression that is none":    {Identities: []source.SignerIdentity{{IssuerRegexp: "(", Subject: "x"}}},
		"an expression that breaks out": {Identities: []source.SignerIdentity{{IssuerRegexp: "a)|(?:b", Subject: "x"}}},
	} {
		if _, err := signature.New(p); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
