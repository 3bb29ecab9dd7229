package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestLargeInput gives the indexer catalogs of unusual sizes. Each is read, or refused with a rule, and the good one
// beside them stays as it is. DESIGN D10.
func TestLargeInput(t *testing.T) { //nolint:tparallel // one stack is the subject
	t.Parallel()
	w := newStack(t)
	w.addCatalog("harbour", example(t))
	channels := 100_000
	if !thorough {
		channels /= brief
	}
	for name, content := range map[string]string{
		"long-line": `{"schema": "olm.package", "name": "long", "description": "` + strings.Repeat("x", 10<<20) + `"}`,
		"deep-json": `{"schema": "olm.package", "name": ` + strings.Repeat("[", 200_000) +
			strings.Repeat("]", 200_000) + `}`,
		"deep-yaml":    "schema: olm.package\nname: deep\nicon: " + strings.Repeat("[", 20_000),
		"aliases":      bomb(),
		"all-channels": manyChannels(channels),
	} {
		t.Run(name, func(t *testing.T) {
			w := w.in(t)
			dir := filepath.Join(t.TempDir(), name)
			w.must(os.MkdirAll(filepath.Join(dir, "package"), 0o755))
			w.must(os.WriteFile(filepath.Join(dir, "package", "catalog.yaml"), []byte(content), 0o600))
			begun := time.Now()
			w.must(w.Post(w.ctx, "/api/v1/catalogs", map[string]any{
				"name": name, "source": map[string]any{"type": "directory", "path": dir},
			}, nil))
			var c struct {
				State, Reason, Rule string
				Details             []struct{ Rule, File, Message string }
			}
			w.eventually("the catalog is read or refused", func() (string, bool) {
				w.must(w.Get(w.ctx, "/api/v1/catalogs/"+name, &c))
				return fmt.Sprint(c), c.State == "Ready" || c.State == "Failed"
			})
			t.Logf("%s after %s: %.300s", c.State, time.Since(begun).Round(time.Millisecond),
				fmt.Sprint(c.Reason, c.Rule, c.Details))
			if c.State == "Failed" && c.Reason == "" && c.Rule == "" && len(c.Details) == 0 {
				t.Error("it is refused without a reason")
			}
		})
	}
	w.catalogReady("harbour")
	w.readyAgain()
}

// bomb is a document whose aliases, taken apart, have a billion elements.
func bomb() string {
	var b strings.Builder
	ten := func(of string) string { return strings.Repeat(of+", ", 9) + of }
	fmt.Fprintf(&b, "schema: olm.package\nname: bomb\na0: &a0 [%s]\n", ten("x"))
	for i := 1; i < 9; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, ten(fmt.Sprintf("*a%d", i-1)))
	}
	return b.String()
}

// manyChannels is a package whose only bundle is in every channel.
func manyChannels(n int) string {
	var b strings.Builder
	b.WriteString("---\nschema: olm.package\nname: wide\ndefaultChannel: c0\n")
	b.WriteString("---\nschema: olm.bundle\nname: wide.v1.0.0\npackage: wide\n" +
		"image: registry.example.com/wide@sha256:" + strings.Repeat("0", 64) +
		"\nproperties:\n- type: olm.package\n  value: {packageName: wide, version: 1.0.0}\n")
	for i := range n {
		fmt.Fprintf(&b, "---\nschema: olm.channel\nname: c%d\npackage: wide\nentries:\n- name: wide.v1.0.0\n", i)
	}
	return b.String()
}

// subscribed is how many subscriptions one namespace gets.
const subscribed = 2_000

// TestManySubscriptions wants more of one namespace than anybody does: each is answered, and listed, and what can be
// installed beside them is.
func TestManySubscriptions(t *testing.T) {
	t.Parallel()
	n := subscribed
	if !thorough {
		n /= 4 * brief
	}
	w := newWorld(t)
	w.addCatalog("harbour", example(t))
	w.group("crowded")
	for i := range n {
		w.subscribe("crowded", subscription{
			Name: fmt.Sprintf("s%d", i), Package: "lighthouse", Catalog: "not-there-yet",
		})
	}
	begun := time.Now()
	w.subscribe("crowded", subscription{Name: "light", Package: "lighthouse", Catalog: "harbour"})
	w.succeeded("crowded", "lighthouse.v1.2.0")
	t.Logf("beside %d subscriptions that cannot be resolved an install takes %s", n,
		time.Since(begun).Round(time.Millisecond))
	w.must(w.Do(w.ctx, http.MethodDelete, scopePath("crowded", "subscriptions/s0"), nil, nil))
}
