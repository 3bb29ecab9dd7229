package api

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/cataloghealth"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/catalogs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/watch"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

const tagCatalogs = "Catalogs"

// CatalogPath is a catalog: in the hub, or in a namespace of a cluster.
type CatalogPath struct {
	Catalog   string `path:"catalog" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Cluster   string `query:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Of a cluster's own catalog, together with namespace"`
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

func (p CatalogPath) name() catalog.Name {
	return catalog.Name{Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Catalog}
}

func catalogLocation(c model.Catalog) string {
	where := prefix + "/catalogs/" + c.Name
	if c.Cluster != "" {
		where += "?" + url.Values{"cluster": {c.Cluster}, "namespace": {c.Namespace}}.Encode()
	}
	return where
}

// catalogHandlers are the operations on catalogs.
type catalogHandlers struct{ Deps }

func (h catalogHandlers) register(a *API) {
	h.catalogWrites(a)
	h.catalogEnds(a)
	h.catalogReads(a)
	h.catalogReports(a)
	h.catalogContent(a)
}

// SecretsQuery says how the credentials that a source names are compared with those that are known.
type SecretsQuery struct {
	Validate string `query:"validate" enum:"strict,lenient" doc:"Without it an unknown secret is accepted and shown as a condition, and a known one must be of a kind that the source can use. strict refuses an unknown one, too; lenient compares nothing."`
}

func (h catalogHandlers) catalogWrites(a *API) {
	register(a, whereAsked(access.Create, access.Catalogs),
		lasting(a, intended(created("/catalogs", "add-catalog", tagCatalogs, "Offer a catalog"))), h.addCatalog)
	register(a, whereAsked(access.Update, access.Catalogs),
		intended(operation(http.MethodPut, "/catalogs/{catalog}", "change-catalog", tagCatalogs,
			"Replace the intent of a catalog, labels and annotations among it")), h.changeCatalog)
	register(a, whereAsked(access.Update, access.Catalogs), triable[model.Catalog](a,
		intended(operation(http.MethodPatch, "/catalogs/{catalog}", "patch-catalog", tagCatalogs,
			"Change parts of the intent of a catalog, as a JSON merge patch (RFC 7396) of what PUT takes; as a dry "+
				"run, priority and disabled alone"))), h.patchCatalog)
}

func (h catalogHandlers) catalogEnds(a *API) {
	register(a, whereAsked(access.Refresh, access.Catalogs),
		lasting(a, operation(http.MethodPost, "/catalogs/{catalog}/refresh", "refresh-catalog", tagCatalogs,
			"Poll the source now")), h.refreshCatalog)
	register(a, whereAsked(access.Delete, access.Catalogs), triable[model.Removed](a,
		operation(http.MethodDelete, "/catalogs/{catalog}", "remove-catalog", tagCatalogs,
			"Stop offering a catalog; what is installed from it stays")), h.removeCatalog)
}

// dryCatalog previews every namespace that a catalog's change touches.
func (h catalogHandlers) dryCatalog(
	ctx context.Context, who model.Caller, n catalog.Name, c model.PreviewCatalog, validate string,
) (*tried, error) {
	c.Name, c.Cluster, c.Namespace = n.Name, n.Cluster, n.Namespace
	return h.dryRun(ctx, who, model.PreviewChange{Catalog: &c}, model.Validate(validate), "", "")
}

// settingsPatch reads a merge patch of what can be tried of a catalog: what another source offers is known once it was
// read.
func settingsPatch(patch map[string]any) (c model.PreviewCatalog, err error) {
	for _, name := range slices.Sorted(maps.Keys(patch)) {
		if name != "priority" && name != "disabled" {
			return c, errs.New(errs.Unprocessable,
				"a dry run of a catalog's change takes priority and disabled only: the effect of another %s is known "+
					"once the catalog was read", name).
				At("body."+name, "dry-run")
		}
	}
	raw, err := json.Marshal(patch)
	if err != nil {
		return c, errs.Wrap(errs.Internal, err, "encode a patch")
	}
	err = json.Unmarshal(raw, &c)
	return c, errs.Wrap(errs.Invalid, err, "read the patch of a catalog")
}

func (h catalogHandlers) catalogReads(a *API) {
	registerList(a, whatIsSeen(access.List, access.Catalogs),
		operation(http.MethodGet, "/catalogs", "list-catalogs", tagCatalogs, "List catalogs"),
		watchedCatalogs, h.listCatalogs)
	register(a, whatIsOffered(access.Get, access.Catalogs),
		operation(http.MethodGet, "/catalogs/{catalog}", "get-catalog", tagCatalogs,
			"Get a catalog, with the findings of its last failure"), h.getCatalog)
	register(a, whatIsOffered(access.Get, access.Catalogs),
		operation(http.MethodGet, "/catalogs/{catalog}/revisions", "list-revisions", tagCatalogs,
			"List what a catalog has served, newest first"), h.listRevisions)
}

func (h catalogHandlers) catalogReports(a *API) {
	register(a, whatIsOffered(access.Get, access.Catalogs),
		operation(http.MethodGet, "/catalogs/{catalog}/findings", "list-findings", tagCatalogs,
			"List what was wrong with a catalog at the last poll, with the rule, the place and how to correct it"),
		h.listFindings)
}

func (h catalogHandlers) catalogContent(a *API) {
	register(a, whatIsOffered(access.List, access.Packages),
		operation(http.MethodGet, "/catalogs/{catalog}/packages", "list-packages", tagCatalogs,
			"List the packages of a catalog"), h.listPackages)
	register(a, whatIsOffered(access.Get, access.Packages),
		operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}", "get-package",
			tagCatalogs, "Get a package with its channels"), h.getPackage)
	register(a, whatIsOffered(access.Get, access.Packages),
		operation(http.MethodGet, "/catalogs/{catalog}/packages/{package}/channels", "list-channels",
			tagCatalogs, "List the channels of a package"), h.listChannels)
	register(a, whatIsOffered(access.List, access.Packages),
		operation(http.MethodGet, "/catalogs/{catalog}/bundles", "list-bundles", tagCatalogs,
			"List bundles of a catalog by package and name"), h.listBundles)
}

// BrowsePath is a catalog whose content is read, and for whom.
type BrowsePath struct {
	Catalog   string `path:"catalog" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
	Cluster   string `query:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"What this cluster sees of a templated catalog. Together with namespace: the catalog that belongs to the cluster"`
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
	Variant   string `query:"variant" maxLength:"16" doc:"What clusters of this Kubernetes minor version, such as 1.34, see of a templated catalog; the highest without it and cluster"`
}

func (p BrowsePath) name() catalog.Name {
	if p.Namespace == "" {
		return catalog.Name{Name: p.Catalog}
	}
	return catalog.Name{Cluster: p.Cluster, Namespace: p.Namespace, Name: p.Catalog}
}

func (p BrowsePath) view() model.CatalogView {
	return model.CatalogView{Cluster: p.Cluster, Variant: p.Variant}
}

// PackagePath is a package of a catalog.
type PackagePath struct {
	BrowsePath
	ReadQuery
	Package string `path:"package" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

// merge applies a JSON merge patch (RFC 7396) to an intent. What comes out is held against the same schema as the body
// of a PUT.
func merge[T any](now T, patch map[string]any) (T, error) {
	var out T
	raw, err := json.Marshal(now)
	if err != nil {
		return out, errs.Wrap(errs.Internal, err, "encode an intent")
	}
	var target any
	if err := json.Unmarshal(raw, &target); err != nil {
		return out, errs.Wrap(errs.Internal, err, "read an intent")
	}
	merged := mergePatch(target, patch)
	strictCasing()
	var v rule.Violations
	for _, err := range huma.NewModelValidator().Validate(typeOf[T](), merged) {
		if d, ok := err.(*huma.ErrorDetail); ok { //nolint:errorlint // what the validator makes, not what wraps it
			v.Addf("/"+d.Location, ruleOf(d.Message), "%s", d.Message)
			continue
		}
		v.Addf("/", "syntax", "%s", err)
	}
	if err := v.Err(); err != nil {
		return out, err
	}
	if raw, err = json.Marshal(merged); err != nil {
		return out, errs.Wrap(errs.Internal, err, "encode an intent")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&out); err != nil {
		return out, errs.New(errs.Invalid, "the patched intent is not of the expected form").At("/", "syntax")
	}
	return out, nil
}

// mergePatch is the function of RFC 7396: null removes, an object is merged, anything else replaces.
func mergePatch(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	object, ok := target.(map[string]any)
	if !ok {
		object = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(object, key)
			continue
		}
		object[key] = mergePatch(object[key], value)
	}
	return object
}

type addCatalogInput struct {
	SecretsQuery
	TryQuery
	Body model.AddCatalog
}

func (h catalogHandlers) addCatalog(
	ctx context.Context, who model.Caller, in *addCatalogInput,
) (*written[model.Catalog], error) {
	c, err := h.Intents.Catalogs.Add(ctx, who, in.Body, model.Validate(in.Validate))
	return wrote(c, c.Position, catalogLocation(c), err)
}

type changeCatalogInput struct {
	CatalogPath
	MatchHeaders
	SecretsQuery
	TryQuery
	Body model.ChangeCatalog
}

func (h catalogHandlers) changeCatalog(
	ctx context.Context, who model.Caller, in *changeCatalogInput,
) (*written[model.Catalog], error) {
	c, err := h.Intents.Catalogs.Change(ctx, who, in.name(), in.Body, model.Validate(in.Validate))
	return wrote(c, c.Position, "", err)
}

type patchCatalogInput struct {
	CatalogPath
	MayMatchHeaders
	SecretsQuery
	DryRunQuery
	Body map[string]any `contentType:"application/merge-patch+json"`
}

func (h catalogHandlers) patchCatalog(ctx context.Context, who model.Caller, in *patchCatalogInput) (*tried, error) {
	if in.DryRun {
		c, err := settingsPatch(in.Body)
		if err != nil {
			return nil, err
		}
		return h.dryCatalog(ctx, who, in.name(), c, in.Validate)
	}
	c, err := h.Intents.Catalogs.Patch(ctx, who, in.name(), model.Validate(in.Validate),
		func(now model.ChangeCatalog) (model.ChangeCatalog, error) { return merge(now, in.Body) })
	return wroteOr(http.StatusOK, c, c.Position, "", err)
}

func (h catalogHandlers) refreshCatalog(
	ctx context.Context, who model.Caller, in *CatalogPath,
) (*written[model.Removed], error) {
	r, err := h.Intents.Catalogs.Refresh(ctx, who, in.name())
	return wrote(r, r.Position, "", err)
}

type removeCatalogInput struct {
	CatalogPath
	DryRunQuery
}

func (h catalogHandlers) removeCatalog(ctx context.Context, who model.Caller, in *removeCatalogInput) (*tried, error) {
	if in.DryRun {
		return h.dryCatalog(ctx, who, in.name(), model.PreviewCatalog{Remove: true}, "")
	}
	r, err := h.Intents.Catalogs.Remove(ctx, who, in.name())
	return wroteOr(http.StatusOK, r, r.Position, "", err)
}

// watchedCatalogs: they are few, and one of the hub belongs to no cluster, so that they are read together.
var watchedCatalogs = watchedAs[model.Catalog]{
	kinds: []events.Kind{events.KindCatalog, events.KindCluster}, undivided: true,
	name: func(c model.Catalog) (watch.Scope, watch.Name) { return inNamespace(c.Cluster, c.Namespace, c.Name) },
}

type listCatalogsInput struct {
	ListQuery
	WatchQuery
	State   string `query:"state" enum:"Loading,Ready,Failed,Disabled" doc:"Disabled are those that are not offered, whatever became of their source; the others are offered"`
	Cluster string `query:"cluster" maxLength:"63" doc:"Only what this cluster can see"`
	LabelQuery
	Sort string `query:"sort" enum:"name,-name,state,-state,created,-created,changed,-changed" doc:"What to sort by, with - the other way round; catalogs of the hub first, each by its subject, without it"`
	ChoiceQuery
}

func (*listCatalogsInput) part(watch.Scope) bool { return true }

func (h catalogHandlers) listCatalogs(
	ctx context.Context, who model.Caller, in *listCatalogsInput,
) (*listOutput[model.Catalog], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Catalogs.List(ctx, who, model.CatalogFilter{
		State: in.State, Label: in.Label, Cluster: in.Cluster, Choice: in.choice(in.Sort), Page: page,
	}))
}

type getCatalogInput struct {
	CatalogPath
	ReadQuery
}

func (h catalogHandlers) getCatalog(
	ctx context.Context, who model.Caller, in *getCatalogInput,
) (*output[model.Catalog], error) {
	if err := h.wait(ctx, who, catalogs.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Catalogs.Get(ctx, who, in.name()))
}

type listRevisionsInput struct {
	CatalogPath
	ListQuery
}

func (h catalogHandlers) listRevisions(
	ctx context.Context, who model.Caller, in *listRevisionsInput,
) (*listOutput[model.Revision], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Catalogs.Revisions(ctx, who, in.name(), page))
}

type listFindingsInput struct {
	CatalogPath
	ListQuery
	Variant  string `query:"variant" maxLength:"16" doc:"Kubernetes minor version of a templated catalog; the highest without it"`
	Severity string `query:"severity" enum:"error,warning,info"`
	Package  string `query:"package" maxLength:"253"`
}

func (h catalogHandlers) listFindings(
	ctx context.Context, who model.Caller, in *listFindingsInput,
) (*listOutput[model.Finding], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	f := model.FindingFilter{Variant: in.Variant, Severity: in.Severity, Package: in.Package, Page: page}
	return listed(h.Reads.Catalogs.Findings(ctx, who, in.name(), f))
}

type listPackagesInput struct {
	BrowsePath
	ListQuery
}

func (h catalogHandlers) listPackages(
	ctx context.Context, who model.Caller, in *listPackagesInput,
) (*listOutput[model.PackageSummary], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Browse.Packages(ctx, who, in.name(), in.view(), page))
}

func (h catalogHandlers) getPackage(
	ctx context.Context, who model.Caller, in *PackagePath,
) (*output[model.PackageDetail], error) {
	if err := h.wait(ctx, who, catalogs.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	return read(h.Reads.Browse.Package(ctx, who, in.name(), in.view(), in.Package))
}

func (h catalogHandlers) listChannels(
	ctx context.Context, who model.Caller, in *PackagePath,
) (*listOutput[model.ChannelDetail], error) {
	if err := h.wait(ctx, who, catalogs.Name, in.ReadQuery); err != nil {
		return nil, err
	}
	items, err := h.Reads.Browse.Channels(ctx, who, in.name(), in.view(), in.Package)
	return listed(items, nil, err)
}

type listBundlesInput struct {
	BrowsePath
	ListQuery
	Package string `query:"package" maxLength:"63"`
	Channel string `query:"channel" maxLength:"253"`
}

func (h catalogHandlers) listBundles(
	ctx context.Context, who model.Caller, in *listBundlesInput,
) (*listOutput[model.BundleSummary], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Browse.Bundles(ctx, who, in.name(),
		model.BundleFilter{Package: in.Package, Channel: in.Channel, View: in.view(), Page: page}))
}

// maxSecretBody leaves room for a credential of the largest size, escaped as JSON.
const maxSecretBody = 1 << 20

// SecretPath is a credential in a path.
type SecretPath struct {
	Name string `path:"name" maxLength:"253" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" patternDescription:"a DNS-1123 subdomain"`
}

// catalogAccessHandlers are the operations on credentials of catalogs, on default catalogs, and on what unhealthy ones
// do to others.
type catalogAccessHandlers struct{ Deps }

func (h catalogAccessHandlers) register(a *API) {
	h.catalogSecrets(a)
	h.catalogPolicies(a)
}

func (h catalogAccessHandlers) catalogSecrets(a *API) {
	registerList(a, fleetWide(access.List, access.CatalogSecrets),
		operation(http.MethodGet, "/catalogsecrets", "list-catalog-secrets", tagCatalogs,
			"List credentials of catalog sources, without their values"), watchedSecrets, h.listCatalogSecrets)
	set := operation(http.MethodPut, "/catalogsecrets/{name}", "set-catalog-secret", tagCatalogs,
		"Give or replace a credential; it is encrypted to the indexer at once and never answered")
	set.MaxBodyBytes = maxSecretBody
	register(a, fleetWide(access.Update, access.CatalogSecrets), set, h.setCatalogSecret)
	register(a, fleetWide(access.Delete, access.CatalogSecrets),
		operation(http.MethodDelete, "/catalogsecrets/{name}", "delete-catalog-secret", tagCatalogs,
			"Erase a credential; catalogs that name it stay, and say that it is missing"), h.deleteCatalogSecret)
}

// HealthQuery is the catalogs that are meant.
type HealthQuery struct {
	Cluster   string `query:"cluster" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Catalogs of this cluster, together with namespace; those of the hub without both"`
	Namespace string `query:"namespace" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label"`
}

func (q HealthQuery) scope() cataloghealth.Scope {
	return cataloghealth.Scope{Cluster: q.Cluster, Namespace: q.Namespace}
}

func (h catalogAccessHandlers) catalogPolicies(a *API) {
	register(a, fleetWide(access.Get, access.OperatorHub),
		operation(http.MethodGet, "/operatorhub", "get-operator-hub", tagCatalogs,
			"Get which default catalogs are switched off"), h.getOperatorHub)
	register(a, fleetWide(access.Update, access.OperatorHub),
		operation(http.MethodPut, "/operatorhub", "set-operator-hub", tagCatalogs,
			"Switch default catalogs off and on"), h.setOperatorHub)
	register(a, whereAsked(access.Get, access.CatalogHealth),
		operation(http.MethodGet, "/cataloghealth", "get-catalog-health", tagCatalogs,
			"Get what an unhealthy catalog does to those who see it but do not need it"), h.getCatalogHealth)
	register(a, whereAsked(access.Update, access.CatalogHealth),
		operation(http.MethodPut, "/cataloghealth", "set-catalog-health", tagCatalogs,
			"Choose what an unhealthy catalog does to those who see it but do not need it"), h.setCatalogHealth)
}

// watchedSecrets: they say which catalogs name them.
var watchedSecrets = watchedInFleet(func(s model.CatalogSecret) watch.Name { return watch.Name{Name: s.Name} },
	events.KindCatalogSecret, events.KindCatalog)

func (h catalogAccessHandlers) listCatalogSecrets(
	ctx context.Context, who model.Caller, in *FleetListQuery,
) (*listOutput[model.CatalogSecret], error) {
	page, err := h.waitList(ctx, who, catalogs.Name, in.ListQuery)
	if err != nil {
		return nil, err
	}
	return listed(h.Reads.Catalogs.Secrets(ctx, who, page))
}

type setCatalogSecretInput struct {
	SecretPath
	TryQuery
	Body model.SetCatalogSecret
}

func (h catalogAccessHandlers) setCatalogSecret(
	ctx context.Context, who model.Caller, in *setCatalogSecretInput,
) (*written[model.CatalogSecret], error) {
	s, err := h.Intents.CatalogSecrets.Set(ctx, who, in.Name, in.Body)
	return wrote(s, s.Position, "", err)
}

func (h catalogAccessHandlers) deleteCatalogSecret(
	ctx context.Context, who model.Caller, in *SecretPath,
) (*written[model.Removed], error) {
	r, err := h.Intents.CatalogSecrets.Delete(ctx, who, in.Name)
	return wrote(r, r.Position, "", err)
}

func (h catalogAccessHandlers) getOperatorHub(
	ctx context.Context, who model.Caller, _ *struct{},
) (*output[model.OperatorHub], error) {
	return read(h.Intents.Catalogs.GetHub(ctx, who))
}

type setOperatorHubInput struct {
	TryQuery
	Body model.SetOperatorHub
}

func (h catalogAccessHandlers) setOperatorHub(
	ctx context.Context, who model.Caller, in *setOperatorHubInput,
) (*output[model.OperatorHub], error) {
	return read(h.Intents.Catalogs.SetHub(ctx, who, in.Body))
}

func (h catalogAccessHandlers) getCatalogHealth(
	ctx context.Context, who model.Caller, in *HealthQuery,
) (*output[model.CatalogHealth], error) {
	return read(h.Intents.CatalogHealth.Get(ctx, who, in.scope()))
}

type setCatalogHealthInput struct {
	HealthQuery
	Body model.SetCatalogHealth
}

func (h catalogAccessHandlers) setCatalogHealth(
	ctx context.Context, who model.Caller, in *setCatalogHealthInput,
) (*written[model.CatalogHealth], error) {
	health, err := h.Intents.CatalogHealth.Set(ctx, who, in.scope(), in.Body)
	return wrote(health, health.Position, "", err)
}
