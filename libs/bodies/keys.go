// Package bodies seals what stands beside the event log and may be erased: configuration values, settings of catalog
// sources, annotations, the reasons of approvers. An event holds a commitment to a body; the body itself is a row of
// PostgreSQL, sealed by a key that is not there. Each kind has keys of its own, and a service has those of the kinds
// that its work needs, so that neither a dump nor another service's credential for the database shows a body.
//
// The gateway alone writes bodies; all four services read some. What is sealed is bound to tenant, kind and commitment:
// a row that was put in the place of another one does not open.
package bodies

import (
	"slices"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
)

// Kind is what a body is. Its text is stored.
type Kind string

// Kinds of bodies.
const (
	Configuration Kind = "subscription-config" // JSON of spec.config
	Source        Kind = "catalog-source"      // JSON such as {"path": "/catalogs/fleet"}
	Annotations   Kind = "annotations"         // JSON of the annotations of an intent
	Reason        Kind = "plan-reason"         // why somebody settled an obstacle, or broke the glass
	// Question is what a preview was asked about. It has no commitment and no row of its own: it is sealed as a reason
	// is, since the gateway alone reads it, and bound to the id of the preview.
	Question Kind = "preview-question"
	// Webhook is the address of a webhook with the secrets that sign. It is kept as a Question is, bound to the
	// webhook's name.
	Webhook Kind = "webhook"
	// Answer is one that is kept for a request with an Idempotency-Key of a machine, which shows no token to seal it
	// by. It is kept as a Question is, bound to the machine and the request.
	Answer Kind = "kept-answer"
)

// Kinds are those that have keys of their own.
func Kinds() []Kind { return []Kind{Configuration, Source, Annotations, Reason} }

// Readers are the kinds that each service reads, and so has the keys of. The view gateway_api.bodies says the same.
func Readers() map[string][]Kind {
	return map[string][]Kind{
		"gateway": Kinds(), "resolver": {Configuration}, "catalog-indexer": {Source},
		"installer": {Configuration, Source, Annotations},
	}
}

// purposes are what keys of a kind are for, as settings and people name them.
var purposes = map[Kind]string{ //nolint:gochecknoglobals // a table
	Configuration: "configuration", Source: "source", Annotations: "annotation", Reason: "reason",
}

// holds says whose keys a kind is sealed by.
func (k Kind) holds() Kind {
	if k == Question || k == Webhook || k == Answer {
		return Reason
	}
	return k
}

// committed says whether events have a commitment to bodies of a kind.
func (k Kind) committed() bool { return k.holds() == k }

// Purpose is what the keys of a kind are for.
func (k Kind) Purpose() string { return purposes[k.holds()] }

// Setting is the name of the setting that has the keys of a kind: configuration-key.
func (k Kind) Setting() string { return k.Purpose() + "-key" }

// Variable is the setting as a variable of the environment.
func (k Kind) Variable() string {
	return map[Kind]string{
		Configuration: "CHANDLER_CONFIGURATION_KEY", Source: "CHANDLER_SOURCE_KEY",
		Annotations: "CHANDLER_ANNOTATION_KEY", Reason: "CHANDLER_REASON_KEY",
	}[k.holds()]
}

// MinKey is how many characters a key has at least: 32 characters of base64 or hexadecimal digits cannot be guessed.
const MinKey = 32

// key is one secret that bodies are sealed by.
type key struct{ id, secret string }

// Keys are the keys of the kinds that a service reads, the active one of each first. The zero value seals and opens
// nothing.
type Keys struct {
	of      map[Kind][]key
	ciphers *ciphers
}

// Secrets are the settings with keys. A service has those of the kinds that it reads.
type Secrets struct{ Configuration, Source, Annotation, Reason string }

// Of are the settings of a service.
func (s *Secrets) Of(service string) Settings {
	out := Settings{}
	for _, k := range Readers()[service] {
		out[k] = map[Kind]*string{
			Configuration: &s.Configuration, Source: &s.Source, Annotations: &s.Annotation, Reason: &s.Reason,
		}[k]
	}
	return out
}

// Settings are the values of the settings of a service, by kind. A kind that a service does not read is not there.
type Settings map[Kind]*string

// Declare declares the settings: secret is how a service declares one that is secret.
func (s Settings) Declare(secret func(p *string, name, doc string)) {
	for _, k := range Kinds() {
		if p := s[k]; p != nil {
			secret(p, k.Setting(), "keys that "+contents[k]+" are sealed by in PostgreSQL, 32 or more random characters "+
				"each, with commas; the first is active")
		}
	}
}

// contents are the bodies of a kind, in words.
var contents = map[Kind]string{ //nolint:gochecknoglobals // a table
	Configuration: "configurations of subscriptions", Source: "sources of catalogs", Annotations: "annotations",
	Reason: "reasons of approvers, what previews are asked about, and addresses and secrets of webhooks,",
}

// Keys reads the keys. A kind without any is an error: nothing is stored in the clear because a setting was forgotten.
func (s Settings) Keys() (Keys, error) {
	out := Keys{of: map[Kind][]key{}, ciphers: &ciphers{}}
	for _, k := range Kinds() {
		p := s[k]
		if p == nil {
			continue
		}
		list, err := ParseKeys(k, *p)
		if err != nil {
			return Keys{}, err
		}
		if len(list) == 0 {
			return Keys{}, errs.New(errs.Invalid, "%s is not set: want keys of %d or more random characters, with commas, "+
				"the first is active; `chandler keys add %s` makes one", k.Variable(), MinKey, k.Purpose()).At(k.Setting(), "")
		}
		for i, id := range list {
			out.of[k] = append(out.of[k], key{id, keys.Entries(*p)[i]})
		}
	}
	return out, nil
}

// ParseKeys returns the ids of the keys in a setting, the active one first. Errors name the place, and quote no key.
func ParseKeys(k Kind, value string) (ids []string, err error) {
	entries := keys.Entries(value)
	for i, e := range entries {
		if len(e) < MinKey {
			return nil, errs.New(errs.Invalid, "%s, key %d of %d has %d characters, at least %d are wanted", k.Variable(),
				i+1, len(entries), len(e), MinKey).At(k.Setting(), "min-length")
		}
		id := keys.IDOf(keyKind, []byte(e)).String()
		if slices.Contains(ids, id) {
			return nil, errs.New(errs.Invalid, "%s, key %d of %d stands there twice", k.Variable(), i+1, len(entries)).
				At(k.Setting(), "unique")
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// keyKind is the kind of these keys. They have no public half: a hash of that many random characters gives none away.
const keyKind = "body"

// Active is the id of the key that bodies of a kind are sealed by, "" where there is none.
func (k Keys) Active(kind Kind) string {
	if list := k.of[kind.holds()]; len(list) > 0 {
		return list[0].id
	}
	return ""
}

// String keeps secrets out of logs.
func (k Keys) String() string { return "keys of bodies" }

// GoString implements fmt.GoStringer.
func (k Keys) GoString() string { return k.String() }
