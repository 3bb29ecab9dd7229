// Package catalogsecret is the aggregate of a credential for sources of catalogs, and the check of what
// people give as one. The value itself never comes near an event: it is encrypted before it is stored,
// and the event carries a commitment. The package is pure.
package catalogsecret

import (
	"fmt"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

// State is a credential as folded from its events. The zero value was never set, or is deleted.
type State struct {
	Name       string
	Kind       source.SecretKind
	Credential string // commitment; "" where there is none
}

// Command is one of Set and Delete.
type Command interface{ secretCommand() }

// Set gives or replaces a credential.
type Set struct {
	Kind       source.SecretKind
	Credential string
}

// Delete forgets a credential.
type Delete struct{}

func (Set) secretCommand()    {}
func (Delete) secretCommand() {}

// Decide returns the events that the command leads to. Setting always says so: what is encrypted cannot be
// compared with what was there.
func Decide(s State, c Command) ([]events.Payload, error) {
	switch c := c.(type) {
	case Set:
		var v rule.Violations
		v.DNSSubdomainName("/name", s.Name)
		if err := v.Err(); err != nil {
			return nil, err
		}
		return []events.Payload{events.CatalogSecretSet{Name: s.Name, Kind: string(c.Kind), Credential: c.Credential}},
			nil
	case Delete:
		if s.Credential == "" {
			return nil, errs.New(errs.NotFound, "no catalog secret %q is known", s.Name)
		}
		return []events.Payload{events.CatalogSecretDeleted{}}, nil
	default:
		return nil, fmt.Errorf("catalogsecret: command %T is not known", c)
	}
}

// Evolve returns the state after an event; s.Name is given by the caller.
func Evolve(s State, p events.Payload) (State, error) {
	switch e := p.(type) {
	case events.CatalogSecretSet:
		s.Kind, s.Credential = source.SecretKind(e.Kind), e.Credential
	case events.CatalogSecretDeleted:
		return State{Name: s.Name}, nil
	default:
		return s, fmt.Errorf("catalogsecret: event %s does not belong in a secret's stream", p.EventType())
	}
	return s, nil
}

// Fits says whether a source of this type can use a credential of this kind (R-DIS-4).
func Fits(t source.Type, k source.SecretKind) bool {
	switch k {
	case source.CA:
		return t == source.Archive || t == source.Git || t == source.Image || t == source.GRPC
	case source.DockerConfig:
		// Bundle images are pulled whatever the catalog came from.
		return true
	case source.Basic:
		return t == source.Archive || t == source.Git
	case source.Token:
		return t == source.Archive || t == source.Git || t == source.GRPC
	case source.SSH:
		return t == source.Git
	case source.Kubeconfig:
		return t == source.ConfigMap
	}
	return false
}
