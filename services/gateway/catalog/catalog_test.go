package catalog_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/catalog"
)

type history = []events.Payload

func TestDecide(t *testing.T) {
	t.Parallel()
	hub := catalog.Name{Name: "fleet"}
	local := catalog.Name{Cluster: "spoke", Namespace: "olm", Name: "fleet"}
	dir := catalog.Spec{SourceType: "directory", Settings: "c1:a", Priority: 5}
	inSpoke := dir
	inSpoke.Visibility = events.CatalogVisibility{Cluster: "spoke"}
	added := events.CatalogAdded{Name: "fleet", SourceType: "directory", Spec: "c1:a", Priority: 5}
	disabled, off := dir, catalog.Spec{SourceType: "image", Settings: "c1:b", Disabled: true, Templated: true}
	disabled.Disabled = true
	addedOff := events.CatalogAdded{Name: "fleet", SourceType: "image", Spec: "c1:b", Disabled: true, Templated: true}
	cases := []struct {
		name  string
		given history
		when  catalog.Command
		then  history
		kind  errs.Kind
	}{
		{"add", nil, catalog.Add{Name: hub, Spec: dir}, history{added}, ""},
		{"add a disabled template", nil, catalog.Add{Name: hub, Spec: off}, history{addedOff}, ""},
		{
			"disable",
			history{added},
			catalog.Change{Spec: disabled},
			history{events.CatalogChanged{SourceType: "directory", Spec: "c1:a", Priority: 5, Disabled: true}},
			"",
		},
		{"disable again", history{addedOff}, catalog.Change{Spec: off}, nil, ""},
		{"refresh a disabled one", history{addedOff}, catalog.Refresh{}, nil, errs.Conflict},
		{"bundles were fetched", history{added, events.CatalogBundlesFetched{}}, catalog.Change{Spec: dir}, nil, ""},
		{"an unknown type", nil, catalog.Add{Name: hub, Spec: catalog.Spec{SourceType: "ftp"}}, nil, errs.Invalid},
		{
			"add to one cluster", nil,
			catalog.Add{Name: local, Spec: inSpoke},
			history{
				events.CatalogAdded{
					Name: "fleet", SourceType: "directory", Spec: "c1:a", Priority: 5, Visibility: inSpoke.Visibility,
				},
			},
			"",
		},
		{"add twice", history{added}, catalog.Add{Name: hub, Spec: dir}, nil, errs.AlreadyExists},
		{"add a cluster's catalog for all", nil, catalog.Add{Name: local, Spec: dir}, nil, errs.Invalid},
		{
			"add with half a place", nil,
			catalog.Add{Name: catalog.Name{Cluster: "spoke", Name: "fleet"}, Spec: inSpoke},
			nil, errs.Invalid,
		},
		{
			"add an unknown source", nil,
			catalog.Add{Name: hub, Spec: catalog.Spec{SourceType: "ftp"}},
			nil,
			errs.Invalid,
		},
		{
			"change",
			history{added},
			catalog.Change{Spec: catalog.Spec{SourceType: "directory", Settings: "c1:a", Priority: 9}},
			history{events.CatalogChanged{SourceType: "directory", Spec: "c1:a", Priority: 9}},
			"",
		},
		{"change nothing", history{added}, catalog.Change{Spec: dir}, nil, ""},
		{"change who owns it", history{added}, catalog.Change{Spec: inSpoke}, nil, errs.Invalid},
		{"change nothing known", nil, catalog.Change{Spec: dir}, nil, errs.NotFound},
		{
			"refresh a broken one",
			history{added, events.CatalogLoadFailed{}},
			catalog.Refresh{},
			history{events.CatalogRefreshRequested{}},
			"",
		},
		{
			"remove",
			history{added, events.CatalogRevisionPublished{}},
			catalog.Remove{},
			history{events.CatalogRemoved{}},
			"",
		},
		{"remove twice", history{added, events.CatalogRemoved{}}, catalog.Remove{}, nil, errs.NotFound},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := catalog.State{Name: hub}
			for _, p := range c.given {
				var err error
				if s, err = catalog.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			got, err := catalog.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSubjectIsReadBack(t *testing.T) {
	t.Parallel()
	for _, n := range []catalog.Name{{Name: "fleet"}, {Cluster: "spoke", Namespace: "olm", Name: "fleet"}} {
		if got := catalog.ParseSubject(n.Subject()); got != n {
			t.Errorf("%v came back as %v", n, got)
		}
	}
}

func TestEvolveRefusesForeignEvents(t *testing.T) {
	t.Parallel()
	if _, err := catalog.Evolve(catalog.State{}, events.ClusterRemoved{}); err == nil {
		t.Error("an event of another kind of stream must not pass silently")
	}
}
