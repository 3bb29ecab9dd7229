package content

import (
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/catalog/compare"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/internal/view/viewtest"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// TestMemory: the bound holds, the oldest goes first, and what is put again is no second entry.
func TestMemory(t *testing.T) {
	t.Parallel()
	m := newMemory[int](2)
	for i, digest := range []string{"a", "b", "a", "c"} {
		m.put(digest, i)
	}
	for digest, want := range map[string]bool{"a": false, "b": true, "c": true} {
		if _, ok := m.get(digest); ok != want {
			t.Errorf("%s is kept: %v, want %v", digest, ok, want)
		}
	}
	if len(m.items) != 2 || len(m.order) != 2 {
		t.Errorf("%d items in the order %q", len(m.items), m.order)
	}
}

// revision stores the packages of a revision, as the indexer does.
func revision(e *viewtest.Env, digest string, packages ...string) {
	for i, p := range packages {
		d := fmt.Sprintf("sha256:%064d", i)
		e.Exec(`insert into catalog.packages (tenant, digest, package, document) values ('default', $1, $2, $3)`, d, p,
			[]byte(`{"name": "`+p+`"}`))
		e.Exec(`insert into catalog.revision_packages (tenant, revision, package, digest)
			values ('default', $1, $2, $3)`, digest, p, d)
	}
}

// TestOffer: a catalog without a revision in service offers nothing that could be checked; one that is ready names its
// packages where it lacks the one that is asked for; a document that is not what its digest says is an error; another
// tenant sees none of it.
func TestOffer(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t)
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	e.Exec(`insert into catalog.catalogs (tenant, stream, subject, source_type, spec, priority)
		values ('default', 'catalog:x:1', 'fleet', 'directory', 'c1:0', 0)`)
	type offer struct {
		ready    bool
		packages []string
		kind     errs.Kind
	}
	ask := func(who model.Caller, pkg string) (out offer) {
		t.Helper()
		err := e.Pool.TenantTx(t.Context(), who.Tenant, func(tx pgx.Tx) error {
			o, err := c.Offer(t.Context(), tx, who.Tenant, "fleet", "harbour", pkg)
			out = offer{o.Ready, o.Packages, ""}
			return err
		})
		if err != nil {
			out.kind = errs.KindOf(err)
		}
		return out
	}
	check := func(name string, got, want offer) {
		t.Helper()
		if got.ready != want.ready || !slices.Equal(got.packages, want.packages) || got.kind != want.kind {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	check("a catalog that is loading", ask(viewtest.Ann, "tide"), offer{})
	revision(e, "sha256:r", "tide", "buoy")
	e.Exec(`update catalog.catalogs set revision = 'sha256:r', state = 'Ready'`)
	check("a package that it lacks", ask(viewtest.Ann, "vault"), offer{ready: true, packages: []string{"buoy", "tide"}})
	check("a document that is not what its digest says", ask(viewtest.Ann, "tide"), offer{kind: errs.Internal, ready: true})
	if got := ask(viewtest.Eve, "vault"); got.ready || got.packages != nil {
		t.Errorf("another tenant is offered %+v", got)
	}
	e.Exec(`update catalog.catalogs set state = 'Failed'`)
	check("a catalog whose last poll failed", ask(viewtest.Ann, "vault"), offer{})
}

// TestPackagesOf: what a tenant may see of a revision is asked for with its own rights, also when another tenant's
// answer is in memory.
func TestPackagesOf(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t)
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	revision(e, "sha256:r", "tide", "buoy")
	for _, x := range []struct {
		who  model.Caller
		want int
	}{{viewtest.Ann, 2}, {viewtest.Eve, 0}, {viewtest.Ann, 2}} {
		err := e.Pool.TenantTx(t.Context(), x.who.Tenant, func(tx pgx.Tx) error {
			refs, err := c.PackagesOf(t.Context(), tx, x.who.Tenant, "sha256:r")
			if len(refs) != x.want {
				t.Errorf("%s sees %d packages, want %d", x.who.Actor, len(refs), x.want)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestCompareNamesItsRules: a difference of older rules is shown under their name and as what it is; where today's have
// compared, too, theirs is shown, whichever came last (DESIGN D5: no recorded answer changes its meaning).
func TestCompareNamesItsRules(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t)
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(semantics, to, difference string) {
		e.Exec(`insert into catalog.upgrades (tenant, from_content, to_content, semantics, breaking, gained, difference)
			values ('default', 'a', $1, $2, false, 0, $3)`, to, semantics, enc.EncodeAll([]byte(difference), nil))
	}
	const old = "chandler.compare.v1"
	put(old, "b", `{}`)
	put(compare.Semantics, "c", `{"demands": [{"danger": "Privileged", "object": "Deployment tide"}]}`)
	put(old, "c", `{}`)
	for to, want := range map[string]string{"b": old, "c": compare.Semantics} {
		u := model.Upgrade{FromContent: "a", ToContent: to}
		err := e.Pool.TenantTx(t.Context(), viewtest.Ann.Tenant, func(tx pgx.Tx) error {
			return c.Compare(t.Context(), tx, viewtest.Ann.Tenant, &u)
		})
		if err != nil || u.Semantics != want || len(u.Demands) != map[string]int{"c": 1}[to] {
			t.Errorf("a to %s: %v, by %s %+v, want %s", to, err, u.Semantics, u.Difference, want)
		}
	}
}

// TestCompare: an upgrade of content that is not known is unknown, the same content is no difference, and one that the
// indexer has not compared yet is pending.
func TestCompare(t *testing.T) {
	t.Parallel()
	e := viewtest.New(t)
	c, err := New()
	if err != nil {
		t.Fatal(err)
	}
	e.Exec(`insert into catalog.upgrades (tenant, from_content, to_content, semantics, breaking, gained, difference)
		values ('default', 'a', 'broken', '1', false, 0, 'no zstd')`)
	for _, x := range []struct {
		from, to, state string
		kind            errs.Kind
	}{
		{"", "b", model.UpgradeUnknown, ""},
		{"a", "", model.UpgradeUnknown, ""},
		{"a", "a", model.UpgradeCompared, ""},
		{"a", "b", model.UpgradePending, ""},
		{"a", "broken", model.UpgradePending, errs.Internal},
	} {
		u := model.Upgrade{FromContent: x.from, ToContent: x.to}
		err := e.Pool.TenantTx(t.Context(), viewtest.Ann.Tenant, func(tx pgx.Tx) error {
			return c.Compare(t.Context(), tx, viewtest.Ann.Tenant, &u)
		})
		if u.State != x.state || (err == nil) != (x.kind == "") || err != nil && !errs.Is(err, x.kind) {
			t.Errorf("%q to %q: state %s, %v, want %s", x.from, x.to, u.State, err, x.state)
		}
	}
}
