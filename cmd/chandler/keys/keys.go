// Package keys makes the secrets of an installation: what chandler dev keeps in its state folder and
// what chandler keys writes for compose and for the chart.
package keys

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"filippo.io/age"

	"github.com/chandler-fleet/chandler/libs/bodies"
)

// Keys are the secrets of one installation.
type Keys struct {
	Token     string `json:"token"`     // bearer token of the first administrator
	Identity  string `json:"identity"`  // age identity that opens kubeconfigs; the installer's alone
	Recipient string `json:"recipient"` // age recipient that encrypts kubeconfigs; the gateway's
	GrantKey  string `json:"grantKey"`  // base64 seed of the Ed25519 key that signs grants
	// The pair for credentials of catalog sources: the catalog-indexer opens what the gateway encrypts.
	CatalogIdentity  string `json:"catalogIdentity"`
	CatalogRecipient string `json:"catalogRecipient"`
	HookKey          string `json:"hookKey"` // that the gateway derives secrets of hooks from
	// What bodies are sealed by in PostgreSQL, by kind: the services that read a kind have its key.
	ConfigurationKey string `json:"configurationKey"`
	SourceKey        string `json:"sourceKey"`
	AnnotationKey    string `json:"annotationKey"`
	ReasonKey        string `json:"reasonKey"`
	// Passwords of the services' database roles and of Postgres' own account: letters and digits, safe in a URL.
	GatewayPassword   string `json:"gatewayPassword"`
	RequestsPassword  string `json:"requestsPassword"` // of what the gateway answers requests as
	ResolverPassword  string `json:"resolverPassword"`
	InstallerPassword string `json:"installerPassword"`
	IndexerPassword   string `json:"indexerPassword"`
	PostgresPassword  string `json:"postgresPassword"`
	NATS              NATS   `json:"nats"`
}

// Make makes new secrets from the system's randomness.
func Make() (Keys, error) {
	id, err := age.GenerateX25519Identity()
	if err != nil {
		return Keys{}, fmt.Errorf("make the key for kubeconfigs: %w", err)
	}
	catalogs, err := age.GenerateX25519Identity()
	if err != nil {
		return Keys{}, fmt.Errorf("make the key for credentials of catalogs: %w", err)
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := rand.Read(seed); err != nil {
		return Keys{}, fmt.Errorf("make the key for grants: %w", err)
	}
	nats, err := makeNATS()
	if err != nil {
		return Keys{}, err
	}
	return Keys{
		Token:           "cht_" + rand.Text() + rand.Text(),
		Identity:        id.String(),
		Recipient:       id.Recipient().String(),
		GrantKey:        base64.StdEncoding.EncodeToString(seed),
		CatalogIdentity: catalogs.String(), CatalogRecipient: catalogs.Recipient().String(),
		HookKey:          rand.Text() + rand.Text(),
		ConfigurationKey: rand.Text() + rand.Text(), SourceKey: rand.Text() + rand.Text(),
		AnnotationKey: rand.Text() + rand.Text(), ReasonKey: rand.Text() + rand.Text(),
		GatewayPassword: rand.Text(), RequestsPassword: rand.Text(), ResolverPassword: rand.Text(),
		InstallerPassword: rand.Text(),
		IndexerPassword:   rand.Text(), PostgresPassword: rand.Text(), NATS: nats,
	}, nil
}

// Complete returns k with what secrets that an older version made do not have yet, and whether anything was added.
func (k Keys) Complete() (_ Keys, added bool, err error) {
	if k.CatalogIdentity != "" && k.HookKey != "" && k.ReasonKey != "" && k.NATS != (NATS{}) {
		return k, false, nil
	}
	made, err := Make()
	if err != nil {
		return k, false, err
	}
	if k.CatalogIdentity == "" {
		k.CatalogIdentity, k.CatalogRecipient = made.CatalogIdentity, made.CatalogRecipient
	}
	if k.HookKey == "" {
		k.HookKey = made.HookKey
	}
	if k.ReasonKey == "" {
		k.ConfigurationKey, k.SourceKey = made.ConfigurationKey, made.SourceKey
		k.AnnotationKey, k.ReasonKey = made.AnnotationKey, made.ReasonKey
	}
	if k.NATS == (NATS{}) {
		k.NATS = made.NATS
	}
	return k, true, nil
}

// Variable is one environment variable of an installation.
type Variable struct {
	Name  string
	Value string
}

// Variables are the secrets under the names that services, compose and chart know, in a fixed order.
func (k Keys) Variables() []Variable {
	return append([]Variable{
		{"CHANDLER_ADMIN_TOKEN", k.Token},
		{"CHANDLER_CATALOG_CREDENTIALS_IDENTITY", k.CatalogIdentity},
		{"CHANDLER_CATALOG_CREDENTIALS_RECIPIENT", k.CatalogRecipient},
		{"CHANDLER_CREDENTIALS_IDENTITY", k.Identity},
		{"CHANDLER_CREDENTIALS_RECIPIENT", k.Recipient},
		{"CHANDLER_GRANT_KEY", k.GrantKey},
		{"CHANDLER_HOOK_KEY", k.HookKey},
		{bodies.Configuration.Variable(), k.ConfigurationKey},
		{bodies.Source.Variable(), k.SourceKey},
		{bodies.Annotations.Variable(), k.AnnotationKey},
		{bodies.Reason.Variable(), k.ReasonKey},
		{"CHANDLER_CATALOG_INDEXER_PASSWORD", k.IndexerPassword},
		{"CHANDLER_GATEWAY_PASSWORD", k.GatewayPassword},
		{"CHANDLER_GATEWAY_API_PASSWORD", k.RequestsPassword},
		{"CHANDLER_INSTALLER_PASSWORD", k.InstallerPassword},
		{"CHANDLER_RESOLVER_PASSWORD", k.ResolverPassword},
		{"CHANDLER_POSTGRES_PASSWORD", k.PostgresPassword},
	}, k.NATS.variables()...)
}

// OfBodies are the keys of the kinds of bodies that a service reads.
func (k Keys) OfBodies(service string) []Variable {
	all := map[bodies.Kind]string{
		bodies.Configuration: k.ConfigurationKey, bodies.Source: k.SourceKey, bodies.Annotations: k.AnnotationKey,
		bodies.Reason: k.ReasonKey,
	}
	var out []Variable
	for _, kind := range bodies.Readers()[service] {
		out = append(out, Variable{kind.Variable(), all[kind]})
	}
	return out
}
