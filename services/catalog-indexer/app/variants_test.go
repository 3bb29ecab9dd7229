package app

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/source"
)

// appendTo appends an event of another service to the stream of a natural key, and lets the indexer take it.
func (b *bench) appendTo(w events.Writer, kind events.Kind, name string, p events.Payload) {
	b.t.Helper()
	pool := b.gateway
	if w != events.Gateway {
		pool = b.db.Pool(b.t, string(w))
	}
	log := eventlog.New(pool)
	b.must(pool.Tx(b.t.Context(), func(tx pgx.Tx) error {
		head, err := log.Latest(b.t.Context(), tx, events.DefaultTenant, kind, name)
		if err != nil {
			return err
		}
		id, version := head.ID, head.Version
		if !head.Exists() {
			id, version = head.Create(), 0
		}
		m := events.Meta{Tenant: events.DefaultTenant, Source: w, Command: uuid.New(), Time: time.Now()}
		_, err = log.Append(b.t.Context(), tx, m, id, name, version, p)
		return err
	}))
	b.catchUp()
}

// secretEvent is the event of a credential.
func (b *bench) secretEvent(name string, p events.Payload) {
	b.t.Helper()
	b.appendTo(events.Gateway, events.KindCatalogSecret, name, p)
}

// secretIs stores a docker configuration as the gateway does.
func (b *bench) secretIs(name, value string, to age.Recipient) {
	b.t.Helper()
	var sealed bytes.Buffer
	w, err := age.Encrypt(&sealed, to)
	b.must(err)
	_, err = w.Write([]byte(value))
	b.must(err)
	b.must(w.Close())
	_, err = b.gateway.Exec(b.t.Context(), `insert into gateway.catalog_secrets (tenant, name, kind, commitment, salt,
		ciphertext, updated)
		values ($1, $2, 'dockerconfigjson', 'c1:x', 'salt', $3, now())`, events.DefaultTenant, name, sealed.Bytes())
	b.must(err)
}

// cluster registers a cluster that runs a version of Kubernetes; "" is not known yet.
func (b *bench) cluster(name, version string) {
	b.t.Helper()
	b.appendTo(events.Gateway, events.KindCluster, name, events.ClusterRegistered{Name: name})
	if version != "" {
		b.runs(name, version)
	}
}

// runs says which version a cluster runs.
func (b *bench) runs(name, version string) {
	b.t.Helper()
	b.appendTo(events.Installer, events.KindCluster, name, events.ClusterObserved{
		State: "Connected", KubernetesVersion: version,
	})
}

// pollAll polls everything that is marked, until nothing is.
func (b *bench) pollAll() {
	b.t.Helper()
	for {
		rows, err := b.Pool.Query(b.t.Context(), `delete from catalog.dirty returning cluster, namespace`)
		b.must(err)
		type key struct{ Stream, Variant string }
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[key])
		b.must(err)
		if len(list) == 0 {
			return
		}
		for _, k := range list {
			b.must(b.pollVariant(k.Stream, k.Variant, 0))
		}
	}
}

func (b *bench) variants(stream string) []string {
	b.t.Helper()
	rows, err := b.gateway.Query(b.t.Context(), `select variant from catalog_api.catalog_status
		where catalog = $1 and variant <> '' order by 1`, stream)
	b.must(err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	b.must(err)
	return list
}

// TestTemplatedReference proves that a templated catalog has one live revision for each minor version of Kubernetes
// in use, that it follows an upgrade of a cluster by itself, and that a variant goes with its last cluster (R-CAT-92).
func TestTemplatedReference(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:v1.33", "p33", good)
	fakes.put("registry.test/c:v1.34", "p34", newer)
	b.cluster("east", "v1.33.4")
	b.cluster("west", "v1.33.9+k3s1")
	stream := b.image("harbour", source.Settings{
		Template: "registry.test/c:v{kube_major_version}.{kube_minor_version}",
	})
	b.pollAll()
	s := b.status(stream, "1.33")
	if s.State != "Ready" || s.Reference != "registry.test/c:v1.33" || s.Template != "AllTemplatesResolved" ||
		s.Revision == "" {
		t.Fatalf("status %+v", s)
	}
	facts := b.facts(stream)
	if p := facts[0].(events.CatalogRevisionPublished); len(facts) != 1 || p.Variant != "1.33" || p.Previous != "" ||
		p.Resolved != "registry.test/c:v1.33@p33" {
		t.Errorf("facts %v", facts)
	}
	b.servedIs(stream, s.Revision) // without a cluster: that of the newest minor

	b.runs("east", "v1.34.0")
	b.pollAll()
	if got := b.variants(stream); !slices.Equal(got, []string{"1.33", "1.34"}) {
		t.Fatalf("variants %v", got)
	}
	newest := b.status(stream, "1.34")
	if newest.Revision == "" || newest.Revision == s.Revision {
		t.Errorf("status %+v", newest)
	}
	b.servedIs(stream, newest.Revision)

	b.appendTo(events.Gateway, events.KindCluster, "west", events.ClusterRemoved{Name: "west"})
	b.pollAll()
	if got := b.variants(stream); !slices.Equal(got, []string{"1.34"}) {
		t.Errorf("variants %v", got)
	}
	// A version that comes back begins anew: the resolver has forgotten it, too.
	b.runs("east", "v1.33.4")
	b.pollAll()
	facts = b.facts(stream)
	if p := facts[len(facts)-1].(events.CatalogRevisionPublished); p.Variant != "1.33" || p.Previous != "" ||
		p.Revision != s.Revision {
		t.Errorf("last fact %+v", p)
	}
	if n := fakes.count("open registry.test/c:v1.34"); n != 1 {
		t.Errorf("1.34 was pulled %d times", n)
	}
}

// TestOneVariantFails proves that a tag which is missing for one version is the trouble of that version alone.
func TestOneVariantFails(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:v1.33", "p33", good)
	b.cluster("east", "v1.33.4")
	b.cluster("west", "v1.34.1")
	stream := b.image("harbour", source.Settings{Template: "registry.test/c:v1.{kube_minor_version}"})
	b.pollAll()
	if s := b.status(stream, "1.33"); s.State != "Ready" {
		t.Errorf("1.33: %+v", s)
	}
	if s := b.status(stream, "1.34"); s.State != "Failed" || s.Connection != "TRANSIENT_FAILURE" || s.Error == "" {
		t.Errorf("1.34: %+v", s)
	}
	for _, f := range b.facts(stream) {
		if failed, is := f.(events.CatalogLoadFailed); is && failed.Variant != "1.34" {
			t.Errorf("fact %+v", failed)
		}
	}
}

// TestFallback proves what is used where a template cannot be resolved: the image, seen in the condition; without an
// image the catalog stops with a reason (R-CAT-93).
func TestFallback(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:latest", "p", good)
	fakes.put("registry.test/c:v1.33", "p33", newer)
	const template = "registry.test/c:v1.{kube_minor_version}"
	with := b.image("with", source.Settings{Template: template, Image: "registry.test/c:latest"})
	without := b.image("without", source.Settings{Template: template})
	broken := b.image("broken", source.Settings{Template: "registry.test/c:{platform_version}"})
	b.pollAll()
	if s := b.status(with, ""); s.State != "Ready" || s.Reference != "registry.test/c:latest" ||
		s.Template != "UnableToResolve" {
		t.Errorf("with an image: %+v", s)
	}
	if s := b.status(without, ""); s.State == "Failed" || s.Message != settledMessage(nil) ||
		len(b.facts(without)) != 0 {
		t.Errorf("without an image, nothing registered: %+v, facts %v", s, b.facts(without))
	}
	f, failed := b.facts(broken)[0].(events.CatalogLoadFailed)
	if s := b.status(broken, ""); s.State != "Failed" || s.Template != "UnableToResolve" || !failed ||
		f.Reason != "TemplateUnresolved" {
		t.Errorf("a variable that is unknown: %+v, facts %v", s, b.facts(broken))
	}
	// A cluster whose version is not known keeps the fallback in use; one that is known gets its own.
	b.cluster("east", "")
	b.cluster("west", "v1.33.0")
	b.pollAll()
	if s := b.status(with, "1.33"); s.State != "Ready" || s.Reference != "registry.test/c:v1.33" {
		t.Errorf("1.33: %+v", s)
	}
	if s := b.status(with, ""); s.NextPoll == nil {
		t.Errorf("the fallback is not polled any more: %+v", s)
	}
	b.runs("east", "v1.33.1")
	b.pollAll()
	if s := b.status(with, ""); s.NextPoll != nil || s.Message != "served by version of Kubernetes: 1.33" {
		t.Errorf("the fallback is polled though nobody uses it: %+v", s)
	}
}

// TestNewVariantIsNoEmptyCatalog proves that who asks for a templated catalog without a cluster gets what is served
// while a newer variant is read for the first time.
func TestNewVariantIsNoEmptyCatalog(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:v1.33", "p33", good)
	b.cluster("east", "v1.33.4")
	stream := b.image("harbour", source.Settings{Template: "registry.test/c:v1.{kube_minor_version}"})
	b.pollAll()
	served := b.status(stream, "1.33").Revision
	b.cluster("west", "v1.34.0")
	b.pollAll() // there is no image for it yet
	if s := b.status(stream, "1.34"); s.State != "Failed" || s.Revision != "" {
		t.Errorf("1.34: %+v", s)
	}
	b.servedIs(stream, served)
	fakes.put("registry.test/c:v1.34", "p34", newer)
	b.must(b.pollVariant(stream, "1.34", 0))
	b.servedIs(stream, b.status(stream, "1.34").Revision)
}

// TestFallbackRecovers proves that the end of a failure is recorded, also where the image that failed was not used in
// between.
func TestFallbackRecovers(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:latest", "p1", good)
	fakes.put("registry.test/c:v1.33", "p33", newer)
	b.cluster("east", "")
	stream := b.image("harbour", source.Settings{
		Image:    "registry.test/c:latest",
		Template: "registry.test/c:v1.{kube_minor_version}",
	})
	b.pollAll()
	served := b.status(stream, "").Revision
	fakes.put("registry.test/c:latest", "p2", "schema: olm.package\nname: broken\n")
	b.must(b.pollOnce(stream))
	b.runs("east", "v1.33.1")
	b.pollAll() // settled: nobody uses the fallback
	fakes.put("registry.test/c:latest", "p3", good)
	b.cluster("west", "")
	b.pollAll()
	var recorded []string
	for _, f := range b.facts(stream) {
		switch p := f.(type) {
		case events.CatalogRevisionPublished:
			if p.Variant == "" {
				recorded = append(recorded, p.Revision)
			}
		case events.CatalogLoadFailed:
			recorded = append(recorded, "failed")
		}
	}
	if !slices.Equal(recorded, []string{served, "failed", served}) {
		t.Errorf("recorded %q", recorded)
	}
}

// TestLastRevisionOfAVariant proves that the revision of a variant which is gone is kept for the retention and
// collected then, though no other one took its place.
func TestLastRevisionOfAVariant(t *testing.T) {
	t.Parallel()
	b, fakes := faked(t)
	fakes.put("registry.test/c:v1.33", "p33", good)
	fakes.put("registry.test/c:v1.34", "p34", newer)
	b.cluster("east", "v1.33.1")
	b.image("harbour", source.Settings{Template: "registry.test/c:v1.{kube_minor_version}"})
	b.pollAll()
	_, err := b.Pool.Exec(t.Context(), `update catalog.revisions set created = created - interval '3 years'`)
	b.must(err)
	b.runs("east", "v1.34.1")
	b.pollAll()
	_, err = b.Pool.Exec(t.Context(), `update catalog.revisions set created = created - interval '3 years'
		where variant = '1.34'`)
	b.must(err)
	for _, c := range []struct{ age, left int }{{399, 2}, {401, 1}} {
		_, err := b.Pool.Exec(t.Context(), `update catalog.revisions set ended = now() - make_interval(days => $1)
			where variant = '1.33' and ended is not null`, c.age)
		b.must(err)
		_, err = b.store.Collector.Collect(t.Context(), service.LeastRetention)
		b.must(err)
		if n := b.count("catalog.revisions"); n != c.left {
			t.Errorf("%d days after the variant went there are %d revisions, want %d", c.age, n, c.left)
		}
	}
	var variant string
	b.must(b.Pool.QueryRow(t.Context(), `select variant from catalog.revisions`).Scan(&variant))
	if variant != "1.34" {
		t.Errorf("the revision of %s stayed", variant)
	}
}
