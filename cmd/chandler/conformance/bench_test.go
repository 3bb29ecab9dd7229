package conformance_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/conformance"
	"github.com/chandler-fleet/chandler/libs/catalog/catalogtest"
	"github.com/chandler-fleet/chandler/libs/catalog/fbc"
	rules "github.com/chandler-fleet/chandler/services/resolver/conformance"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
	"github.com/chandler-fleet/chandler/services/resolver/resolve"
)

// olm is what OLM's resolver needed as a library, with its snapshots in memory, in milliseconds, on a machine
// whose yardstick was olmYardstick. A max or p95 of 0 was not told.
type olm struct{ p50, p95, max float64 }

const olmYardstick = 0.89 // seconds for sha256 over 1 GiB in one thread

// yardstick measures this machine, in this moment, in the same way.
func yardstick() float64 {
	const rounds, size = 256, 4 << 20
	block := make([]byte, size)
	h := sha256.New()
	began := time.Now()
	for range rounds {
		h.Write(block)
	}
	h.Sum(nil)
	return time.Since(began).Seconds()
}

// measure resolves every input in turn, b.N times, and tells what a resolution takes: the median of a case's
// times counts for it, and what it allocates. Where OLM's figures are known it tells how many times faster this
// is, with theirs scaled by the yardstick of this moment.
func measure(b *testing.B, inputs []resolution.Input, than olm) {
	b.Helper()
	times := make([][]time.Duration, len(inputs))
	scale := func() float64 { return 0 }
	if than != (olm{}) {
		stick := yardstick()
		scale = func() float64 { return (stick + yardstick()) / 2 / olmYardstick }
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for b.Loop() {
		for i, in := range inputs {
			began := time.Now()
			resolve.Resolve(in)
			times[i] = append(times[i], time.Since(began))
		}
	}
	runtime.ReadMemStats(&after)
	factor := scale()
	ms := make([]float64, len(inputs))
	for i, t := range times {
		slices.Sort(t)
		ms[i] = t[len(t)/2].Seconds() * 1000
	}
	slices.Sort(ms)
	at := func(part float64) float64 { return ms[min(int(part*float64(len(ms))), len(ms)-1)] }
	for _, f := range []struct {
		name      string
		own, olms float64
	}{{"p50", at(0.5), than.p50}, {"p95", at(0.95), than.p95}, {"max", ms[len(ms)-1], than.max}} {
		b.ReportMetric(f.own, f.name+"-ms")
		if f.olms > 0 {
			b.ReportMetric(f.olms*factor/f.own, f.name+"-faster")
		}
	}
	runs := float64(b.N * len(inputs))
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/runs/1024, "KiB/case")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/runs, "allocs/case")
}

// inputs of the cases of a set; more are catalogs that every case sees beside its own.
func inputs(b *testing.B, set string, more ...source) []resolution.Input {
	b.Helper()
	dir := catalogtest.Conformance(b)
	files, err := conformance.FindCases(filepath.Join(dir, set))
	if err != nil {
		b.Fatal(err)
	}
	out := make([]resolution.Input, 0, len(files))
	reader := conformance.NewReader()
	for _, file := range files {
		c, err := conformance.ReadCase(file)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, input(b, c, reader.Load(filepath.Dir(file)), more...))
	}
	return out
}

// source is a catalog that is made ready already.
type source struct {
	name    string
	content *rules.Content
}

func input(b *testing.B, c rules.Case, load rules.Load, more ...source) resolution.Input {
	b.Helper()
	beside := map[string]*rules.Content{}
	for _, s := range more {
		c.Catalogs = append(c.Catalogs, rules.Catalog{Name: s.name, Namespace: c.GlobalNamespace, Priority: -1})
		beside[s.name] = s.content
	}
	in, err := c.Input(func(k rules.Catalog) (*rules.Content, error) {
		if content := beside[k.Name]; content != nil {
			return content, nil
		}
		return load(k)
	})
	if err != nil {
		b.Fatal(err)
	}
	return in
}

// published are the real catalogs, and the same under other names: twenty, as a large hub has them.
func published(b *testing.B) []source {
	b.Helper()
	ready.Do(func() {
		var kinds []source
		for _, name := range []string{
			catalogtest.CertifiedFBC420, catalogtest.CertifiedFBC414,
			catalogtest.Okderators,
		} {
			kinds = append(kinds, source{name, content(b, catalogtest.Unpack(b, name, nil))})
		}
		bundles, err := conformance.NewReader().Load(catalogtest.Conformance(b))(
			rules.Catalog{Name: "bundles", File: "catalogs/certified-bundles.jsonl.gz"})
		if err != nil {
			b.Fatal(err)
		}
		kinds = append(kinds, source{"bundles", bundles})
		const all = 20
		for i := range all {
			k := kinds[i%len(kinds)]
			twenty = append(twenty, source{fmt.Sprintf("%s-%d", k.name, i/len(kinds)), k.content})
		}
	})
	return twenty
}

// twenty catalogs take some seconds to make ready: once for all benchmarks.
var (
	ready  sync.Once
	twenty []source
)

// content makes a file-based catalog ready.
func content(b *testing.B, dir string) *rules.Content {
	b.Helper()
	var documents []json.RawMessage
	_, err := fbc.Walk(os.DirFS(dir), func(d fbc.Blob) error {
		documents = append(documents, d.Raw)
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	c, err := rules.NewContent(documents)
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkYardstick is the machine: seconds for sha256 over 1 GiB in one thread.
func BenchmarkYardstick(b *testing.B) {
	for b.Loop() {
		b.ReportMetric(yardstick(), "s/GiB")
	}
}

// BenchmarkReal are the 300 cases on published catalogs: at least 20 times as fast as OLM at the median and 75
// times at p95, within 0.8, 5 and 100 ms; with twenty more catalogs in view the same median (DESIGN §7).
func BenchmarkReal(b *testing.B) {
	b.Run("own-catalogs", func(b *testing.B) { measure(b, inputs(b, "real"), olm{p50: 16, p95: 371, max: 4400}) })
	b.Run("all-catalogs", func(b *testing.B) {
		measure(b, inputs(b, "real", published(b)...),
			olm{p50: 16, p95: 371, max: 4400})
	})
}

// BenchmarkSubscriptions are namespaces of 1 to 50 subscriptions that nothing is installed of.
func BenchmarkSubscriptions(b *testing.B) {
	for _, size := range []struct {
		subscriptions   int
		certified, many olm
	}{
		{1, olm{p50: 1.4}, olm{p50: 3.4, max: 9.5}},
		{5, olm{p50: 8.4}, olm{p50: 24, max: 2800}},
		{20, olm{p50: 54}, olm{p50: 574, max: 2000}},
		{50, olm{p50: 161}, olm{p50: 2491, max: 7100}},
	} {
		b.Run(fmt.Sprintf("certified/%d", size.subscriptions), func(b *testing.B) {
			measure(b, namespaces(b, size.subscriptions, published(b)[:1]), size.certified)
		})
		b.Run(fmt.Sprintf("twenty-catalogs/%d", size.subscriptions), func(b *testing.B) {
			measure(b, namespaces(b, size.subscriptions, published(b)), size.many)
		})
	}
}

// namespaces are some with n subscriptions to different packages of the first catalog, always the same ones.
func namespaces(b *testing.B, n int, catalogs []source) []resolution.Input {
	b.Helper()
	const many = 20
	random := rand.New(rand.NewPCG(1, uint64(n)))
	var out []resolution.Input
	for range many {
		c := rules.Case{Namespace: "ops", GlobalNamespace: "hub", OperatorGroups: []rules.OperatorGroup{{Name: "og"}}}
		names := input(b, c, nil, catalogs...).View.Packages(
			resolution.CatalogKey{Name: catalogs[0].name, Namespace: "hub"})
		for _, i := range random.Perm(len(names))[:min(n, len(names))] {
			c.Subscriptions = append(c.Subscriptions, rules.Subscription{
				Name: names[i], Package: names[i],
				Catalog: catalogs[0].name, CatalogNamespace: "hub",
			})
		}
		out = append(out, input(b, c, nil, catalogs...))
	}
	return out
}

// BenchmarkAdversarial are the cases that are made to be hard, each within a second.
func BenchmarkAdversarial(b *testing.B) {
	than := map[string]olm{
		"deep-50":                              {p50: 2500},
		"late-conflict-50-depth-8":             {p50: 2700},
		"pigeonhole-10-subscriptions-9-holes":  {p50: 650},
		"pigeonhole-50-subscriptions-50-holes": {p50: 4650},
	}
	dir := catalogtest.Conformance(b)
	files, err := conformance.FindCases(filepath.Join(dir, "adversarial"))
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		name := strings.TrimPrefix(strings.TrimSuffix(filepath.Base(file), ".json"), "adversarial--")
		b.Run(name, func(b *testing.B) {
			c, err := conformance.ReadCase(file)
			if err != nil {
				b.Fatal(err)
			}
			measure(b, []resolution.Input{input(b, c, conformance.NewReader().Load(dir))}, than[name])
		})
	}
}
