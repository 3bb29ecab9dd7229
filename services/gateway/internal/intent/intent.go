// Package intent wires the services that carry out what people and programs want, one package for each aggregate. A
// service opens a unit of work (package unit): it folds the stream of its aggregate, has the aggregate decide, and
// appends the events in one transaction with the bodies that they refer to.
package intent

import (
	"time"

	"github.com/chandler-fleet/chandler/services/gateway/cataloghook"
	"github.com/chandler-fleet/chandler/services/gateway/internal/installerclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/approvalpolicies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/audit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/bodies"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/cataloghooks"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/catalogsecrets"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/clusters"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/effects"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/fleets"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/identities"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/installplans"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operatorgroups"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/operators"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/parked"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/previews"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/replicas"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/roles"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/subscriptions"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/tokens"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/unit"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/webhooks"
	"github.com/chandler-fleet/chandler/services/gateway/internal/resolverclient"
	"github.com/chandler-fleet/chandler/services/gateway/internal/store"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// Deps are what the services are made of.
type Deps struct {
	Units       *unit.Runner
	Credentials *store.Credentials
	Secrets     *store.CatalogSecrets
	Tokens      *store.Tokens
	Identities  *store.Identities
	Access      tokens.Policies
	Offers      subscriptions.Offers
	Observed    subscriptions.Clusters
	History     History
	Subscribers operators.Subscribers
	Resolver    resolverclient.Client
	Installer   installerclient.Client
	Webhooks    *webhooks.Sender

	HookKeys                cataloghook.Keys // that secrets of hooks are derived from; without one there are none
	DefaultCatalogs         []model.AddCatalog
	GlobalNamespaces        []string
	GlobalCatalogNamespaces []string
	MaxTokenLife            time.Duration
	NewIdentities           int
	LegalHold               bool // nothing is erased
}

// Services carry out intents.
type Services struct {
	Clusters       *clusters.Service
	Catalogs       *catalogs.Service
	CatalogHooks   *cataloghooks.Service
	CatalogSecrets *catalogsecrets.Service
	CatalogHealth  *cataloghealth.Service
	OperatorGroups *operatorgroups.Service
	Subscriptions  *subscriptions.Service
	InstallPlans   *installplans.Service
	Policies       *approvalpolicies.Service
	Fleets         *fleets.Service
	Operators      *operators.Service
	Previews       *previews.Service
	Effects        *effects.Service
	Tokens         *tokens.Service
	Identities     *identities.Service
	Roles          *roles.Service
	Webhooks       *webhooks.Service

	Upkeep
}

// Upkeep are the services for whoever keeps an installation.
type Upkeep struct {
	Audit    *audit.Service
	Bodies   *bodies.Service
	Parked   *parked.Service
	Replicas *replicas.Service
}

// History is what read models say of the past, by which rollbacks go.
type History struct {
	Subscriptions subscriptions.History
	Rollouts      fleets.Rollouts
}

// New makes the services.
func New(d Deps) *Services {
	u, log := d.Units, d.Units.Slog
	s := &Services{
		Clusters: &clusters.Service{Units: u, Credentials: d.Credentials, JoinTokens: d.Installer},
		Catalogs: &catalogs.Service{
			Units: u, Secrets: d.Secrets, Defaults: d.DefaultCatalogs, Tenants: d.Tokens,
			GlobalNamespaces: d.GlobalCatalogNamespaces, Slog: log,
		},
		CatalogSecrets: &catalogsecrets.Service{Units: u, Secrets: d.Secrets},
		CatalogHealth:  &cataloghealth.Service{Units: u},
		OperatorGroups: &operatorgroups.Service{Units: u, GlobalNamespaces: d.GlobalNamespaces},
		InstallPlans:   &installplans.Service{Units: u},
		Policies:       &approvalpolicies.Service{Units: u},
		Fleets:         &fleets.Service{Units: u, Resolver: d.Resolver, Rollouts: d.History.Rollouts},
		Effects:        &effects.Service{Units: u, Tenants: d.Tokens, Slog: log},
		Tokens: &tokens.Service{
			Units: u, Tokens: d.Tokens, Policies: d.Access, MaxLife: d.MaxTokenLife,
			BreakGlass: &tokens.BreakGlass{Units: u, Slog: log},
		},
		Identities: &identities.Service{
			Units: u, Identities: d.Identities, Tokens: d.Tokens, Policies: d.Access, MostNew: d.NewIdentities,
		},
		Roles: &roles.Service{Units: u, Tokens: d.Tokens},
		Upkeep: Upkeep{
			Audit: &audit.Service{Units: u}, Bodies: &bodies.Service{Units: u, LegalHold: d.LegalHold},
			Parked: &parked.Service{Units: u}, Replicas: &replicas.Service{Units: u},
		},
		Webhooks: &webhooks.Service{
			Units: u, Hooks: store.Webhooks{Keys: u.Bodies.Keys}, Sender: d.Webhooks,
		},
	}
	s.CatalogHooks = &cataloghooks.Service{Units: u, Keys: d.HookKeys, Catalogs: s.Catalogs, Slog: log}
	s.Subscriptions = &subscriptions.Service{
		Units: u, Groups: s.OperatorGroups, Offers: d.Offers, Clusters: d.Observed, History: d.History.Subscriptions,
	}
	s.Operators = &operators.Service{
		Units: u, Subscriptions: s.Subscriptions, Subscribers: d.Subscribers, Resolver: d.Resolver,
		Installer: d.Installer,
	}
	s.Previews = &previews.Service{
		Units: u, Resolver: d.Resolver, Clusters: d.Observed, Subscriptions: s.Subscriptions, Groups: s.OperatorGroups,
		Catalogs: s.Catalogs, Policies: s.Policies, Store: store.Previews{Bodies: u.Bodies}, Slog: log,
	}
	return s
}
