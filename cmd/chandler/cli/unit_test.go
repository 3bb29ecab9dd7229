package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

func TestSettingsOrder(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "chandler")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), []byte("url: http://file\ntoken: file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		app  app
		env  map[string]string
		want settings
	}{
		"nothing said":       {want: settings{URL: DefaultURL}},
		"the file":           {env: map[string]string{"HOME": home}, want: settings{"http://file", "file"}},
		"another home":       {env: map[string]string{"HOME": "/nowhere", "XDG_CONFIG_HOME": filepath.Join(home, ".config")}, want: settings{"http://file", "file"}},
		"environment first":  {env: map[string]string{"HOME": home, "CHANDLER_URL": "http://env"}, want: settings{"http://env", "file"}},
		"flags first of all": {app: app{url: "http://flag", token: "flag"}, env: map[string]string{"CHANDLER_URL": "http://env"}, want: settings{"http://flag", "flag"}},
	} {
		c.app.Env = func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }
		got, err := c.app.settings()
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, c.want)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	a := &app{}
	here := scope{cluster: "c", namespace: "n"}
	for name, c := range map[string]struct {
		scope scope
		args  []string
		want  string // kind and keys, or a part of the error
	}{
		"all of a kind":          {here, []string{"subs"}, "subscription"},
		"names in a scope":       {here, []string{"sub", "a", "b"}, "subscription c/n/a c/n/b"},
		"a whole key":            {scope{}, []string{"og", "x/y/z"}, "operatorgroup x/y/z"},
		"kind and key":           {scope{}, []string{"CSV/x/y/z"}, "operator x/y/z"},
		"kind and name":          {here, []string{"ip/p"}, "installplan c/n/p"},
		"a cluster has no scope": {here, []string{"cluster", "x"}, "cluster x"},
		"a hub catalog":          {scope{}, []string{"catalog", "x"}, "catalog x"},
		"a cluster's catalog":    {here, []string{"catsrc", "x"}, "catalog c/n/x"},
		"no scope":               {scope{cluster: "c"}, []string{"sub", "a"}, "say where"},
		"half a key":             {here, []string{"sub", "a/b"}, "is not a name"},
		"an empty part":          {here, []string{"sub", "a//b"}, "is not a name"},
		"a scoped cluster":       {here, []string{"cluster", "a/b/c"}, "is not a name"},
		"no such kind":           {here, []string{"pods"}, "no kind"},
		"a name too many":        {here, []string{"sub/a", "b"}, "what is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target, err := a.target(c.scope, c.args)
			got := fmt.Sprint(err)
			if err == nil {
				got = target.resource.singular()
				for _, r := range target.refs {
					got += " " + r.String()
				}
			}
			if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
				t.Errorf("target(%v) = %s, want %s", c.args, got, c.want)
			}
		})
	}
}

func TestOutputFormats(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	a := &app{Streams: Streams{Now: func() time.Time { return now }}}
	r := a.clusters()
	list := []model.Cluster{
		{Name: "east-1", State: "Connected", KubernetesVersion: "v1.34.4", RegisteredAt: now.Add(-3 * time.Hour), Labels: map[string]string{"b": "2", "a": "1"}},
		{Name: "w", State: "Unreachable", Reason: "ConnectionRefused", RegisteredAt: now.Add(-90 * time.Second)},
	}
	items := make([]item, len(list))
	for i, c := range list {
		items[i] = clusterItem(a, c)
	}
	for format, want := range map[string]string{
		"":     "NAME     STATE         KUBERNETES   AGE\neast-1   Connected     v1.34.4      3h\nw        Unreachable   <none>       90s\n",
		"name": "cluster/east-1\ncluster/w\n",
		"wide": "NAME     STATE         KUBERNETES   AGE   REASON              LABELS\n" +
			"east-1   Connected     v1.34.4      3h    <none>              a=1,b=2\n" +
			"w        Unreachable   <none>       90s   ConnectionRefused   <none>\n",
	} {
		var b strings.Builder
		o := output{format: format}
		if err := o.write(&b, r.columns, items, false); err != nil || b.String() != want {
			t.Errorf("-o %q wrote\n%s(%v), want\n%s", format, b.String(), err, want)
		}
	}
	for _, format := range []string{"json", "yaml"} {
		var one, many strings.Builder
		o := output{format: format}
		if err := o.write(&one, nil, items[:1], true); err != nil || strings.Contains(one.String(), "items") {
			t.Errorf("one thing as %s: %s, %v", format, one.String(), err)
		}
		if err := o.write(&many, nil, items[:1], false); err != nil || !strings.Contains(many.String(), "items") {
			t.Errorf("a list as %s: %s, %v", format, many.String(), err)
		}
	}
}

// clusterItem is the item that the resource shows, by way of its own list function.
func clusterItem(a *app, c model.Cluster) item {
	i, err := one(c, nil, a.showCluster)
	if err != nil {
		panic(err)
	}
	return i
}

func TestSameSubscription(t *testing.T) {
	t.Parallel()
	base := model.SubscriptionSpec{Package: "p", Catalog: "c", Config: []byte(`{"env":[{"name":"A","value":"1"}]}`)}
	same := base
	same.Approval, same.Config = "Automatic", []byte(` {"env": [ {"value":"1", "name":"A"} ]}`)
	if !sameSubscription(base, same) {
		t.Error("defaults and the order of JSON make a difference")
	}
	for name, change := range map[string]func(*model.SubscriptionSpec){
		"approval": func(s *model.SubscriptionSpec) { s.Approval = "Manual" },
		"channel":  func(s *model.SubscriptionSpec) { s.Channel = "x" },
		"config":   func(s *model.SubscriptionSpec) { s.Config = []byte(`{}`) },
		"none":     func(s *model.SubscriptionSpec) { s.Config = nil },
	} {
		other := base
		change(&other)
		if sameSubscription(base, other) {
			t.Errorf("another %s makes no difference", name)
		}
	}
}

func TestSameOperatorGroup(t *testing.T) {
	t.Parallel()
	a := model.OperatorGroupSpec{TargetNamespaces: []string{"a", "b"}}
	if !sameOperatorGroup(a, model.OperatorGroupSpec{TargetNamespaces: []string{"b", "a"}, UpgradeStrategy: "Default"}) {
		t.Error("the order of namespaces makes a difference")
	}
	if sameOperatorGroup(a, model.OperatorGroupSpec{TargetNamespaces: []string{"a"}}) || sameOperatorGroup(a, model.OperatorGroupSpec{TargetNamespaces: a.TargetNamespaces, Colocation: "shared"}) ||
		sameOperatorGroup(a, model.OperatorGroupSpec{TargetNamespaces: a.TargetNamespaces, ExcludeGlobalCatalogs: true}) {
		t.Error("another group makes no difference")
	}
	chosen := func(values ...string) model.OperatorGroupSpec {
		return model.OperatorGroupSpec{Selector: events.LabelSelector{MatchExpressions: []events.LabelRequirement{{Key: "sea", Operator: "In", Values: values}}}}
	}
	if !sameOperatorGroup(chosen("a", "b"), chosen("b", "a")) || sameOperatorGroup(chosen("a"), chosen("b")) || sameOperatorGroup(chosen("a"), a) {
		t.Error("selectors are compared by what they choose")
	}
	if sameOperatorGroup(model.OperatorGroupSpec{StaticProvidedAPIs: true, ProvidedAPIs: []string{"A.v1.b"}}, model.OperatorGroupSpec{StaticProvidedAPIs: true}) {
		t.Error("another reservation makes no difference")
	}
}

func TestSelectorText(t *testing.T) {
	t.Parallel()
	s := events.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}, MatchExpressions: []events.LabelRequirement{
		{Key: "sea", Operator: "NotIn", Values: []string{"x", "y"}}, {Key: "e", Operator: "Exists"}, {Key: "f", Operator: "DoesNotExist"},
	}}
	if got := namespaceSelector(s); got != "a=1,b=2,sea notin (x,y),e,!f" {
		t.Errorf("selector %s", got)
	}
	if got := namespaceSelector(events.LabelSelector{}); got != "" {
		t.Errorf("no selector: %s", got)
	}
}

func TestExpand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, f := range []string{"b.yml", "a.yaml", "c.json", "readme.md"} {
		if err := os.WriteFile(filepath.Join(dir, f), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := expand(dir)
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "a.yaml" {
		t.Errorf("expand = %v, %v", files, err)
	}
	if _, err := expand(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no .yaml") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestMainSaysOneSentence(t *testing.T) {
	t.Parallel()
	var out, errOut strings.Builder
	s := Streams{In: strings.NewReader(""), Out: &out, Err: &errOut, Env: func(string) (string, bool) { return "", false }, Now: time.Now}
	if status := Main(context.Background(), s, []string{"get", "clusters", "--url", "nowhere"}); status != exitUsage {
		t.Errorf("status %d", status)
	}
	if got := errOut.String(); !strings.HasPrefix(got, "error: ") || strings.Count(got, "\n") != 1 || out.Len() > 0 {
		t.Errorf("said %q and wrote %q", got, out.String())
	}
	if status := Main(context.Background(), s, []string{"--help"}); status != 0 || !strings.Contains(out.String(), "Everyday commands:") {
		t.Errorf("help: status %d, %q", status, out.String())
	}
}

func TestNotFoundIsToldLikeTheGateways(t *testing.T) {
	t.Parallel()
	err := notFound("install plan", client.Ref{Cluster: "c", Namespace: "n", Name: "x"})
	if !client.IsStatus(err, 404) || err.Error() != "there is no install plan c/n/x" {
		t.Errorf("notFound = %v", err)
	}
}
