package app_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
)

// version is one bundle of a test package.
type version struct {
	v        string
	replaces string
	provides []string // kinds in group sea.test
	requires []string // kinds in group sea.test
	modes    []string // install modes; all where empty
	bare     bool     // its manifests are not in the catalog
	image    string   // where they are, then
	verbs    []string // on secrets of the whole cluster
	owns     []string // kinds in group sea.test, by API services
	minKube  string
}

// pkg makes a package with one channel "stable", head first, and stores the bundles' content.
func (f *fleet) pkg(name string, versions ...version) catalog.Package {
	f.t.Helper()
	p := catalog.Package{Name: name, DefaultChannel: "stable", Channels: []catalog.Channel{{Name: "stable"}}}
	for _, v := range versions {
		csv := name + ".v" + v.v
		e := catalog.Entry{Name: csv}
		if v.replaces != "" {
			e.Replaces = name + ".v" + v.replaces
		}
		p.Channels[0].Entries = append(p.Channels[0].Entries, e)
		b := catalog.Bundle{Name: csv, Version: v.v, Image: v.image}
		b.Properties = []catalog.Property{
			property(f.t, catalog.TypePackage, catalog.PackageProperty{PackageName: name, Version: v.v}),
			// PostgreSQL takes no NUL in text or jsonb; what a catalog's author writes must not matter.
			property(f.t, "sea.test/note", "a \x00 inside"),
		}
		for _, k := range v.provides {
			b.Properties = append(b.Properties, property(f.t, catalog.TypeGVK,
				catalog.GVK{Group: "sea.test", Version: "v1", Kind: k}))
		}
		for _, k := range v.requires {
			b.Properties = append(b.Properties, property(f.t, catalog.TypeGVKRequired,
				catalog.GVK{Group: "sea.test", Version: "v1", Kind: k}))
		}
		if !v.bare {
			b.Content = f.content(csv, v)
		}
		p.Bundles = append(p.Bundles, b)
	}
	return p
}

func property(t testing.TB, typ string, v any) catalog.Property {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return catalog.Property{Type: typ, Value: raw}
}

// content stores a bundle of one ClusterServiceVersion with one Deployment.
func (f *fleet) content(csv string, v version) digest.Digest {
	f.t.Helper()
	modes := v.modes
	if len(modes) == 0 {
		modes = []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"}
	}
	var installModes []map[string]any
	for _, m := range modes {
		installModes = append(installModes, map[string]any{"type": m, "supported": true})
	}
	var permissions []map[string]any
	if len(v.verbs) > 0 {
		permissions = []map[string]any{{
			"serviceAccountName": "main",
			"rules": []map[string]any{{
				"apiGroups": []string{""}, "resources": []string{"secrets"},
				"verbs": v.verbs,
			}},
		}}
	}
	var owned []map[string]any
	for _, k := range v.owns {
		owned = append(owned, map[string]any{
			"name": strings.ToLower(k) + "s", "group": "sea.test", "version": "v1",
			"kind": k, "deploymentName": "controller",
		})
	}
	raw, err := json.Marshal(map[string]any{
		"apiVersion": "operators.coreos.com/v1alpha1", "kind": "ClusterServiceVersion",
		"metadata": map[string]any{"name": csv}, "spec": map[string]any{
			"version": v.v, "displayName": csv, "installModes": installModes, "minKubeVersion": v.minKube,
			"apiservicedefinitions": map[string]any{"owned": owned},
			"install": map[string]any{
				"strategy": "deployment",
				"spec": map[string]any{"clusterPermissions": permissions, "deployments": []map[string]any{{
					"name": "controller", "spec": map[string]any{
						"replicas": 1, "selector": map[string]any{"matchLabels": map[string]any{"app": csv}},
						"template": map[string]any{
							"metadata": map[string]any{"labels": map[string]any{"app": csv}},
							"spec": map[string]any{
								"containers": []map[string]any{{"name": "main", "image": "registry.example/" + csv}},
							},
						},
					},
				}}},
			},
		},
	})
	f.must(err)
	p, err := packedOnce(raw)
	f.must(err)
	_, err = f.pools[events.Indexer].Exec(f.ctx,
		`insert into catalog.contents (tenant, digest, size, pack) values ($1, $2, $3, $4) on conflict do nothing`,
		tenant, string(p.digest), p.size, p.pack)
	f.must(err)
	return p.digest
}

// packed is the content of a bundle as the indexer stores it.
type packed struct {
	digest digest.Digest
	size   int
	pack   []byte
}

// packs has the contents by manifest: the tests publish the same ones again and again, and packing them each time took
// an eighth of their processor time.
var packs sync.Map

func packedOnce(manifest []byte) (packed, error) {
	if p, ok := packs.Load(string(manifest)); ok {
		return p.(packed), nil
	}
	content, err := bundle.FromManifests([][]byte{manifest})
	if err != nil {
		return packed{}, err
	}
	canonical, d, err := content.Canonical()
	if err != nil {
		return packed{}, err
	}
	p := packed{digest: d, size: len(canonical), pack: bundle.Pack(canonical)}
	packs.Store(string(manifest), p)
	return p, nil
}
