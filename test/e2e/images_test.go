package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chandler-fleet/chandler/libs/source"
)

// TestCatalogImage installs from a catalog image whose bundles are images, out of a registry that asks for a password:
// what is needed is pulled, and nothing else, whatever is killed meanwhile; what is missing is explained, and taken up
// by itself when it is there. R-CAT-60, R-DIS-4, R-SUB-42, R-RES-40.
func TestCatalogImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := newRegistry(t)
	image := r.catalogImage(example(t), "v1", "lighthouse")
	w.must(w.Post(w.ctx, "/api/v1/catalogs", map[string]any{
		"name": "harbour", "source": map[string]any{
			"type": "image", "image": image, "insecure": true,
			"secrets": []string{"dock-pull"},
		},
	}, nil))
	w.eventually("the catalog says that its credential is missing", func() (string, bool) {
		var c struct{ State, Reason string }
		w.must(w.Get(w.ctx, "/api/v1/catalogs/harbour", &c))
		return c.State + " " + c.Reason, c.State == "Failed"
	})
	auths, err := json.Marshal(map[string]any{"auths": map[string]any{
		r.host: map[string]any{"username": registryUser, "password": registryPassword},
	}})
	w.must(err)
	w.must(w.Do(w.ctx, "PUT", "/api/v1/catalogsecrets/dock-pull",
		map[string]any{"kind": "dockerconfigjson", "value": json.RawMessage(auths)}, nil))
	w.catalogReady("harbour")
	if got := r.repositories(); !slices.Equal(got, []string{"catalogs/harbour"}) {
		t.Errorf("for the catalog alone %v were pulled", got)
	}

	// What is asked for while nobody can fetch it is not lost, whoever is killed then.
	w.group("images")
	w.Kill("catalog-indexer")
	w.subscribe("images", subscription{Name: "buoy", Package: "buoy", Channel: "beta", Catalog: "harbour"})
	w.condition("images", "buoy", "BundleUnpacking")
	w.Kill("resolver")
	for _, name := range []string{"catalog-indexer", "resolver"} {
		w.must(w.Launch(name))
		w.must(w.Ready(w.ctx, name))
	}
	w.succeeded("images", "buoy.v0.9.1")
	w.succeeded("images", "tidegauge.v1.1.0")
	if got := r.repositories(); !slices.Equal(got, []string{"bundles/buoy", "bundles/tidegauge", "catalogs/harbour"}) {
		t.Errorf("for buoy and its dependency %v were pulled", got)
	}

	w.subscribe("images", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
	w.condition("images", "light", "BundleUnpackFailed")
	r.bundleImage(filepath.Join(example(t), "lighthouse", "1.2.0"), "lighthouse", "1.2.0")
	w.succeeded("images", "lighthouse.v1.2.0")

	w.templated(r)
}

// templated installs from a catalog whose reference depends on the cluster's version of Kubernetes (R-CAT-92).
func (w *world) templated(r *registryOf) {
	w.t.Helper()
	var c struct {
		KubernetesVersion string `json:"kubernetesVersion"`
	}
	w.must(w.Get(w.ctx, "/api/v1/clusters/"+spoke, &c))
	minor, err := source.Variant(c.KubernetesVersion)
	w.must(err)
	r.catalogImage(example(w.t), "v"+minor)
	w.must(w.Post(w.ctx, "/api/v1/catalogs", map[string]any{
		"name": "templated", "source": map[string]any{
			"type": "image", "template": r.host + "/catalogs/harbour:v{kube_major_version}.{kube_minor_version}",
			"insecure": true, "secrets": []string{"dock-pull"},
		},
	}, nil))
	w.group("docks", "docks")
	w.subscribe("docks", subscription{Name: "dock", Package: "drydock", Catalog: "templated"})
	w.succeeded("docks", "drydock.v0.5.0")
}
