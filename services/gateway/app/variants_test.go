package app_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// templated is a catalog as the indexer leaves it: one look failed for 1.9, 1.34 serves with findings.
func (b *bench) templated(name string) model.Catalog {
	b.t.Helper()
	c := must[model.Catalog](b, 201, b.do("POST", "/api/v1/catalogs", fmt.Sprintf(
		`{"name": %q, "source": {"type": "image", "template": "registry.example.test/a:v{kube_major_version}.{kube_minor_version}"}}`, name)))
	b.published(name, c.Stream, "sha256:fallback", tidegauge())
	b.published(name, c.Stream, "sha256:new", buoy())
	b.exec("catalog-indexer",
		`update catalog.catalogs set templated = true, revision = 'sha256:fallback' where stream = $1`, c.Stream)
	b.exec("catalog-indexer",
		`insert into catalog.variants (tenant, stream, variant, revision, state, document, reference, resolved, connection, polled, quarantined, errors, warnings, template)
		values ('default', $1, '1.34', 'sha256:new', 'Ready', 'sha256:f', 'registry.example.test/a:v1.34', 'sha256:image', 'READY', now(), '{sick}', 2, 1, 'AllTemplatesResolved')`, c.Stream)
	b.exec("catalog-indexer",
		`insert into catalog.variants (tenant, stream, variant, state, reason, error, error_reason, connection, template, template_message)
		values ('default', $1, '1.9', 'Failed', 'TemplateUnresolved', 'no such tag', 'RegistryServerError', 'TRANSIENT_FAILURE', 'UnableToResolve', 'the version is not known')`, c.Stream)
	b.exec("catalog-indexer",
		`insert into catalog.findings (tenant, document, catalog, findings) values ('default', 'sha256:f', $1,
		'[{"rule": "R-CAT-35", "severity": "error", "package": "sick", "file": "a.yaml", "line": 3, "message": "a"},
		  {"rule": "R-CAT-36", "severity": "error", "package": "sick", "message": "b"}, {"rule": "R-CAT-59", "severity": "warning", "message": "c"}]')`, c.Stream)
	b.fact(events.Indexer, events.KindCatalog, name, name,
		events.CatalogLoadFailed{Reason: "TemplateUnresolved", Variant: "1.9"})
	return c
}

// TestVariants proves R-CAT-93 and the status table of R-CAT §1.11: what the indexer saw for each Kubernetes
// version is shown, the highest first, and each cluster browses its own.
func TestVariants(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.templated("a")
	c := must[model.Catalog](b, 200, b.do("GET", b.seen("/api/v1/catalogs/a"), nil))
	if c.State != "Ready" || c.Revision != "sha256:new" || len(c.Variants) != 3 || c.Variants[0].Variant != "1.34" ||
		c.Variants[1].Variant != "1.9" {
		t.Fatalf("got %+v", c)
	}
	if v := c.Variants[0]; v.Resolved != "sha256:image" || v.Connection != "READY" || v.PolledAt == nil ||
		fmt.Sprint(v.Quarantined) != "[sick]" || v.Errors != 2 || v.Warnings != 1 {
		t.Errorf("got %+v", v)
	}
	if v := c.Variants[1]; v.Error != "no such tag" || v.ErrorReason != "RegistryServerError" || v.State != "Failed" {
		t.Errorf("got %+v", v)
	}
	var conditions []string
	for _, x := range c.Conditions {
		conditions = append(conditions, strings.Join([]string{x.Type, x.Status, x.Reason, x.Message}, " "))
	}
	if got := strings.Join(conditions, "\n"); got != `TemplatesHaveResolved True AllTemplatesResolved Kubernetes 1.34
ResolvedImage True AllTemplatesResolved Kubernetes 1.34: registry.example.test/a:v1.34
TemplatesHaveResolved False UnableToResolve Kubernetes 1.9: the version is not known
ResolvedImage False UnableToResolve Kubernetes 1.9: the version is not known` {
		t.Errorf("conditions %s", got)
	}

	for name, version := range map[string]string{"new": "v1.34.2", "old": "v1.20.0", "silent": ""} {
		b.cluster(name)
		if version != "" {
			b.fact(events.Installer, events.KindCluster, name, name,
				events.ClusterObserved{State: "Connected", KubernetesVersion: version})
		}
		must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/"+name), nil))
	}
	for query, want := range map[string]string{
		"": "a/buoy", "cluster=new": "a/buoy", "cluster=old": "a/tidegauge", "cluster=silent": "a/tidegauge",
		"cluster=unknown": "a/tidegauge",
	} {
		if got := b.search(query).names(); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
		list := must[struct{ Items []model.PackageSummary }](
			b, 200, b.do("GET", "/api/v1/catalogs/a/packages?"+query, nil)).Items
		if len(list) != 1 || "a/"+list[0].Name != want {
			t.Errorf("packages for %q: %+v, want %s", query, list, want)
		}
		for _, path := range []string{"", "/icon", "/upgrades", "/channels"} {
			if a := b.do("GET", "/api/v1/catalogs/a/packages/"+want[2:]+path+"?"+query, nil); a.status != 200 {
				t.Errorf("%s for %q: %d %s", path, query, a.status, a.body)
			}
		}
	}
	if l := must[struct{ Items []model.BundleSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/a/bundles?cluster=old", nil)).Items; len(l) != 3 {
		t.Errorf("bundles of the fallback: %+v", l)
	}
	if l := must[struct{ Items []model.BundleSummary }](
		b, 200, b.do("GET", "/api/v1/catalogs/a/bundles?variant=1.34", nil)).Items; len(l) != 1 {
		t.Errorf("bundles of 1.34: %+v", l)
	}
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/a/packages?variant=1.50", nil))

	// The list is filtered by the state that it shows: the last event of this catalog tells of another variant.
	for state, want := range map[string]int{"Ready": 1, "Failed": 0} {
		if l := must[struct{ Items []model.Catalog }](b, 200,
			b.do("GET", "/api/v1/catalogs?state="+state, nil)).Items; len(l) != want {
			t.Errorf("%s: %+v", state, l)
		}
	}
}

// TestSubscriptionsAreCheckedAgainstWhatTheirClusterSees: with a templated catalog each cluster has its own
// packages, channels and deprecations (R-CAT-92, R-SUB-41).
func TestSubscriptionsAreCheckedAgainstWhatTheirClusterSees(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.templated("a") // 1.34 has the buoy, the fallback the tidegauge with a deprecated channel
	for name, version := range map[string]string{"new": "v1.34.2", "old": "v1.20.0"} {
		b.cluster(name)
		b.fact(events.Installer, events.KindCluster, name, name,
			events.ClusterObserved{State: "Connected", KubernetesVersion: version})
		must[model.Cluster](b, 200, b.do("GET", b.seen("/api/v1/clusters/"+name), nil))
	}
	subscribe := func(cluster, pkg, channel string) answer {
		return b.do("POST", "/api/v1/clusters/"+cluster+"/namespaces/ops/subscriptions?validate=strict",
			fmt.Sprintf(`{"name": %q, "package": %[1]q, "channel": %q, "catalog": "a", "approval": "Manual"}`, pkg,
				channel))
	}
	must[problem](b, 422, subscribe("new", "tidegauge", "fast"))
	must[problem](b, 422, subscribe("old", "buoy", "stable"))
	must[model.Subscription](b, 201, subscribe("new", "buoy", "stable"))
	s := must[model.Subscription](b, 201, subscribe("old", "tidegauge", "fast"))
	s = must[model.Subscription](b, 200, b.do("GET",
		"/api/v1/clusters/old/namespaces/ops/subscriptions/tidegauge?minPosition="+s.Position, nil))
	if !slices.ContainsFunc(s.Status.Conditions,
		func(c model.Condition) bool { return c.Type == "ChannelDeprecated" }) {
		t.Errorf("got %+v", s.Status.Conditions)
	}
}

// TestFindings: what was wrong at the last look, by page, severity and package.
func TestFindings(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.templated("a")
	type page struct {
		Items []model.Finding
		Next  string
	}
	first := must[page](b, 200, b.do("GET", b.seen("/api/v1/catalogs/a/findings")+"&limit=2", nil))
	second := must[page](b, 200, b.do("GET", "/api/v1/catalogs/a/findings?limit=2&cursor="+first.Next, nil))
	if len(first.Items) != 2 || first.Items[0].Line != 3 || len(second.Items) != 1 ||
		second.Items[0].Rule != "R-CAT-59" || second.Next != "" {
		t.Errorf("got %+v then %+v", first, second)
	}
	for query, want := range map[string]int{
		"severity=warning": 1, "package=sick": 2,
		"package=sick&severity=warning": 0, "variant=1.34": 3, "variant=1.9": 0,
	} {
		if got := must[page](b, 200, b.do("GET", "/api/v1/catalogs/a/findings?"+query, nil)); len(got.Items) != want {
			t.Errorf("%s: %+v", query, got.Items)
		}
	}
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/a/findings?variant=1.50", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/catalogs/none/findings", nil))
}
