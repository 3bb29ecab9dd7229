package registry

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog/load"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// TestMemory: what a server has us remember is bounded, each name and all together (issue: hostile input).
func TestMemory(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxName+1)
	for name, c := range map[string]struct {
		change func(*played, *Options)
		rule   string
	}{
		"a long name":    {func(p *played, _ *Options) { p.packages[0].Name = long }, "MaxName"},
		"a long channel": {func(p *played, _ *Options) { p.packages[0].Channels[0].Name = long }, "MaxName"},
		"a long head":    {func(p *played, _ *Options) { p.packages[0].Channels[0].CsvName = long }, "MaxName"},
		"a long bundle":  {func(p *played, _ *Options) { p.bundles[0].CsvName = long }, "MaxName"},
		"a long skip":    {func(p *played, _ *Options) { p.bundles[0].Skips = []string{"a", long} }, "MaxName"},
		"a long range":   {func(p *played, _ *Options) { p.bundles[0].SkipRange = long }, "MaxName"},
		"a huge name of a list": {func(p *played, _ *Options) {
			p.packages[0].Name = strings.Repeat(
				"x", MaxPackageBytes)
		}, ""},
		"many names": {func(p *played, o *Options) { many(p); o.limits.facts = 1000 }, "MaxFacts"},
		"many skips": {
			func(p *played, o *Options) { p.bundles[0].Skips = make([]string, 100); o.limits.facts = 3000 },
			"MaxFacts",
		},
		"a package of many words": {func(p *played, o *Options) {
			p.packages[0].Deprecation = &api.Deprecation{Message: strings.Repeat("x", 3000)}
			o.limits.facts = 3000
		}, "MaxFacts"},
		"a bundle of many words": {func(p *played, o *Options) {
			p.bundles[0].Deprecation = &api.Deprecation{Message: strings.Repeat("x", 3000)}
			o.limits.facts = 3000
		}, "MaxFacts"},
		"a description too long": {func(p *played, o *Options) {
			p.bundles[0].CsvJson = `{"metadata":{"name":"tide.v1"},"spec":{"description":"` +
				strings.Repeat("x", 3000) + `"}}`
			o.limits.facts = 3000
		}, "MaxFacts"},
		"many parts": {func(p *played, o *Options) {
			p.bundles[0].Skips = make(
				[]string, 100)
			o.limits.fields = 50
		}, "MaxFields"},
		"many parts at once": {func(p *played, o *Options) {
			p.packages[0].Channels = make(
				[]*api.Channel, 100)
			o.limits.fields = 50
		}, "MaxFields"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := tide()
			o := play(t, p)
			o.limits = o.limits.orDefault()
			c.change(p, &o)
			_, _, _, err := Open(t.Context(), o)
			if !errs.Is(err, errs.TooLarge) || len(err.Error()) > 1000 {
				t.Fatalf("got %v, want too-large", err)
			}
			if e, ok := errors.AsType[*errs.Error](err); c.rule != "" && (!ok || e.Rule != "registry."+c.rule) {
				t.Errorf("got %v, want rule registry.%s", err, c.rule)
			}
		})
	}
}

// many adds packages without channels.
func many(p *played) {
	for i := range 100 {
		p.packages = append(p.packages, &api.Package{Name: fmt.Sprintf("moon-%d", i)})
	}
}

// TestLargeAlone: bundles that are larger than others are read all the same, one at a time.
func TestLargeAlone(t *testing.T) {
	t.Parallel()
	p := tide()
	pages := strings.Repeat("x", 4000)
	p.packages[0].Channels = nil
	p.bundles = nil
	for i := range 2 * asking {
		name := fmt.Sprintf("tide.v%d", i)
		p.bundles = append(p.bundles, &api.Bundle{
			CsvName: name, PackageName: "tide", ChannelName: name,
			BundlePath: "registry.sea.test/tide:" + name, Version: fmt.Sprintf("%d.0.0", i+1),
		})
		p.packages[0].Channels = append(p.packages[0].Channels, &api.Channel{Name: name, CsvName: name})
	}
	p.packages[0].DefaultChannelName = "tide.v0"
	var calls atomic.Int32
	p.get = func(_ context.Context, q *api.GetBundleRequest) (*api.Bundle, error) {
		calls.Add(1)
		return &api.Bundle{
			CsvName: q.GetCsvName(), PackageName: "tide", BundlePath: "registry.sea.test/tide:" + q.GetCsvName(),
			Version: strings.TrimPrefix(q.GetCsvName(), "tide.v") + ".0.0",
			CsvJson: `{"kind":"ClusterServiceVersion","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"name":"` + q.GetCsvName() + `"},"spec":{"description":"` + pages + `"}}`,
		}, nil
	}
	o := play(t, p)
	o.limits = o.limits.orDefault()
	o.limits.listed = 2000
	tree, _, end, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := load.Load(tree, load.Options{})
	if err != nil || len(c.Packages) != 1 || len(c.Packages[0].Bundles) != 2*asking {
		t.Errorf("%v, %v", err, c.Findings)
	}
	if n := calls.Load(); n != 4*asking {
		t.Errorf("%d calls, want each of %d bundles asked for twice", n, 2*asking)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
