package e2e

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"
)

// TestCatalogImage installs from a catalog image whose bundles are images, out of a registry that asks for a password: what
// is needed is pulled, and nothing else; what is missing is explained, and taken up by itself when it is there.
// R-CAT-60, R-DIS-4, R-SUB-42, R-RES-40.
func TestCatalogImage(t *testing.T) {
	w := newWorld(t)
	r := newRegistry(t)
	image := r.catalogImage(example(t), "lighthouse")
	w.must(w.Post(w.ctx, "/api/v1/catalogs", map[string]any{
		"name": "harbour", "source": map[string]any{"type": "image", "image": image, "insecure": true, "secrets": []string{"dock-pull"}},
	}, nil))
	w.eventually("the catalog says that its credential is missing", func() (string, bool) {
		var c struct{ State, Reason string }
		w.must(w.Get(w.ctx, "/api/v1/catalogs/harbour", &c))
		return c.State + " " + c.Reason, c.State == "Failed"
	})
	auths, err := json.Marshal(map[string]any{"auths": map[string]any{r.host: map[string]any{"username": registryUser, "password": registryPassword}}})
	w.must(err)
	w.must(w.Do(w.ctx, "PUT", "/api/v1/catalogsecrets/dock-pull", map[string]any{"kind": "dockerconfigjson", "value": json.RawMessage(auths)}, nil))
	w.catalogReady("harbour")
	if got := r.repositories(); !slices.Equal(got, []string{"catalogs/harbour"}) {
		t.Errorf("for the catalog alone %v were pulled", got)
	}

	w.group("images")
	w.subscribe("images", subscription{Name: "buoy", Package: "buoy", Channel: "beta", Catalog: "harbour"})
	w.succeeded("images", "buoy.v0.9.1")
	w.succeeded("images", "tidegauge.v1.1.0")
	if got := r.repositories(); !slices.Equal(got, []string{"bundles/buoy", "bundles/tidegauge", "catalogs/harbour"}) {
		t.Errorf("for buoy and its dependency %v were pulled", got)
	}

	w.subscribe("images", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
	w.condition("images", "light", "BundleUnpackFailed")
	r.bundleImage(filepath.Join(example(t), "lighthouse", "1.2.0"), "lighthouse", "1.2.0")
	w.succeeded("images", "lighthouse.v1.2.0")
}
