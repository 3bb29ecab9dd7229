package source_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/signature/signaturetest"
)

// TestSignaturePolicyRules: what a policy says of keys, identities, roots and names is checked when it is given, with
// the rule that it breaks; what cannot be verified by its own trusted root is no policy.
func TestSignaturePolicyRules(t *testing.T) {
	t.Parallel()
	key, root := signaturetest.Public(t, signaturetest.NewKey(t)), signaturetest.New(t).TrustedRoot()
	without := func(part string) string {
		var r map[string]any
		if err := json.Unmarshal([]byte(root), &r); err != nil {
			t.Fatal(err)
		}
		if r[part] == nil {
			t.Fatalf("a trusted root has no %s", part)
		}
		delete(r, part)
		out, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	one := []source.SignerIdentity{{Issuer: "https://issuer.test", SubjectRegexp: "https://forge.test/ops/.*"}}
	none, two := new(int), new(2)
	for what, c := range map[string]struct {
		policy source.SignaturePolicy
		rule   string // "" is taken
	}{
		"a key":       {policy: source.SignaturePolicy{Keys: []string{key}}},
		"an identity": {policy: source.SignaturePolicy{Identities: one, TrustedRoot: root}},
		"both":        {policy: source.SignaturePolicy{Keys: []string{key}, Identities: one, TrustedRoot: root}},
		"a key and a log": {
			policy: source.SignaturePolicy{Keys: []string{key}, LogEntries: new(1), TrustedRoot: root},
		},
		"a timestamp": {
			policy: source.SignaturePolicy{
				Identities:       one,
				TrustedRoot:      without("tlogs"),
				LogEntries:       none,
				SignedTimestamps: 1,
			},
		},
		"a private root": {
			policy: source.SignaturePolicy{Identities: one, TrustedRoot: without("ctlogs"), CertificateLogs: none},
		},
		"names": {
			policy: source.SignaturePolicy{
				Keys:            []string{key},
				MatchRepository: true,
				Repositories:    []string{"registry.test/a/*", "registry.test:5000/a/b", "registry.test/*"},
			},
		},
		"nobody":           {source.SignaturePolicy{TrustedRoot: root}, source.RuleRequired},
		"no root":          {source.SignaturePolicy{Identities: one}, source.RuleRequired},
		"no root for logs": {source.SignaturePolicy{Keys: []string{key}, LogEntries: new(1)}, source.RuleRequired},
		"a root for nothing": {
			source.SignaturePolicy{Keys: []string{key}, TrustedRoot: root}, source.RuleTrustedRoot,
		},
		"no time": {
			source.SignaturePolicy{Identities: one, TrustedRoot: root, LogEntries: none},
			source.RuleSignedAt,
		},
		"too few logs": {
			source.SignaturePolicy{Identities: one, TrustedRoot: root, LogEntries: two},
			source.RuleTrustedRoot,
		},
		"no logs": {
			source.SignaturePolicy{Identities: one, TrustedRoot: without("ctlogs")},
			source.RuleTrustedRoot,
		},
		"no authority": {
			source.SignaturePolicy{Identities: one, TrustedRoot: without("certificateAuthorities")},
			source.RuleTrustedRoot,
		},
		"not a root": {
			source.SignaturePolicy{Identities: one, TrustedRoot: `{"mediaType":"text/plain"}`},
			source.RuleTrustedRoot,
		},
		"a large root": {
			source.SignaturePolicy{Identities: one, TrustedRoot: root + strings.Repeat(" ", 1<<16)},
			source.RuleMaxLength,
		},
		"a broken chain": {
			source.SignaturePolicy{
				Identities:  one,
				TrustedRoot: strings.ReplaceAll(root, `"rawBytes":"MII`, `"rawBytes":"AAA`),
			},
			source.RuleTrustedRoot,
		},
		"many logs": {
			source.SignaturePolicy{Keys: []string{key}, LogEntries: new(9), TrustedRoot: root},
			source.RuleThreshold,
		},
		"fewer than none": {source.SignaturePolicy{Keys: []string{key}, SignedTimestamps: -1}, source.RuleThreshold},
		"certificates of keys": {
			source.SignaturePolicy{Keys: []string{key}, CertificateLogs: two}, source.RuleThreshold,
		},
		"no issuer": {
			source.SignaturePolicy{TrustedRoot: root, Identities: []source.SignerIdentity{{Subject: "x"}}},
			source.RuleIdentity,
		},
		"no subject": {
			source.SignaturePolicy{TrustedRoot: root, Identities: []source.SignerIdentity{{Issuer: "x"}}},
			source.RuleIdentity,
		},
		"both subjects": {source.SignaturePolicy{TrustedRoot: root, Identities: []source.SignerIdentity{
			{Issuer: "x", Subject: "x", SubjectRegexp: "x"},
		}}, source.RuleIdentity},
		"an expression that breaks out": {source.SignaturePolicy{TrustedRoot: root, Identities: []source.SignerIdentity{
			{Issuer: "x", SubjectRegexp: "a)|(?:.*"},
		}}, source.RuleIdentity},
		"a long subject": {source.SignaturePolicy{TrustedRoot: root, Identities: []source.SignerIdentity{
			{Issuer: "x", Subject: strings.Repeat("x", 2000)},
		}}, source.RuleMaxLength},
		"a repository with a tag": {
			source.SignaturePolicy{Keys: []string{key}, Repositories: []string{"registry.test/a:1"}},
			source.RuleRepository,
		},
		"a short name": {
			source.SignaturePolicy{Keys: []string{key}, Repositories: []string{"ops/fleet"}},
			source.RuleRepository,
		},
		"everything": {
			source.SignaturePolicy{Keys: []string{key}, Repositories: []string{"*"}},
			source.RuleRepository,
		},
		"no predicate": {
			source.SignaturePolicy{Keys: []string{key}, PredicateTypes: []string{"sbom"}},
			source.RulePredicate,
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got := source.Check(source.Image, source.Settings{Image: "registry.test/a:1", Signatures: &c.policy})
			switch {
			case c.rule == "" && len(got) > 0:
				t.Error(got)
			case c.rule != "" && (len(got) == 0 || got[0].Rule != c.rule ||
				!strings.HasPrefix(got[0].Field, "/signatures")):
				t.Errorf("%v; want %s", got, c.rule)
			}
		})
	}
	layout := source.Settings{Path: "/a", Signatures: &source.SignaturePolicy{
		Keys: []string{key}, MatchRepository: true,
	}}
	if got := source.Check(source.Image, layout); len(got) != 1 || got[0].Rule != source.RuleNameOfLayout {
		t.Errorf("a layout: %v", got)
	}
}

// TestPolicyDigestStays: policies that were stored before keep the digest that events name.
func TestPolicyDigestStays(t *testing.T) {
	t.Parallel()
	sum, err := (&source.SignaturePolicy{Keys: []string{"a", "b"}}).Digest()
	if err != nil {
		t.Fatal(err)
	}
	if sum != "sha256:46e3208c548fe84f1d8aa059e9417e8aeb55e228adc5f3b5f742932f9a340d59" {
		t.Errorf("%s", sum)
	}
}
