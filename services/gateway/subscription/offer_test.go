package subscription_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	gatewaycatalog "github.com/chandler-fleet/chandler/services/gateway/catalog"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/subscription"
)

// place is where an error says that the input is wrong, "" for none.
func place(err error) string {
	if e, ok := err.(*errs.Error); ok { //nolint:errorlint // what the rules return, not what wraps it
		return e.Field
	}
	return ""
}

// TestRollbackTo: a rollback leads to a version that was installed before, and to nothing else.
func TestRollbackTo(t *testing.T) {
	t.Parallel()
	name := subscription.Name{Cluster: "harbour", Namespace: "ops", Name: "etcd"}
	past := model.Past{CSV: "etcd.v3", Before: []string{"etcd.v2", "etcd.v1"}}
	for _, c := range []struct {
		name string
		past model.Past
		to   string
		want subscription.Rollback
		err  string
	}{
		{"the version before", past, "", subscription.Rollback{From: "etcd.v3", To: "etcd.v2"}, ""},
		{"an earlier one", past, "etcd.v1", subscription.Rollback{From: "etcd.v3", To: "etcd.v1"}, ""},
		{"one that was never there", past, "etcd.v9", subscription.Rollback{}, "there were: etcd.v2, etcd.v1"},
		{"the installed one", past, "etcd.v3", subscription.Rollback{}, "was not installed before"},
		{"nothing before", model.Past{CSV: "etcd.v3"}, "", subscription.Rollback{}, "nothing was installed before"},
		{"nothing installed", model.Past{}, "", subscription.Rollback{}, "nothing installed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := subscription.RollbackTo(name, c.past, c.to)
			if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %+v, %v; want %+v, %q", got, err, c.want, c.err)
			}
		})
	}
}

func offer() gatewaycatalog.Offer {
	return gatewaycatalog.Offer{Ready: true, Package: &catalog.Package{
		Name: "etcd", DefaultChannel: "stable",
		Channels: []catalog.Channel{
			{Name: "stable", Entries: []catalog.Entry{{Name: "etcd.v1"}, {Name: "etcd.v2", Replaces: "etcd.v1"}}},
			{Name: "alpha", Entries: []catalog.Entry{{Name: "etcd.v3"}}},
		},
		Bundles: []catalog.Bundle{{Name: "etcd.v1"}, {Name: "etcd.v2"}, {Name: "etcd.v3"}},
	}}
}

// TestCheckOffer: what a ready catalog does not have is refused at its place (R-SUB-5), and nothing else is.
func TestCheckOffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   model.SubscriptionSpec
		of   gatewaycatalog.Offer
		at   string
	}{
		{"package alone", model.SubscriptionSpec{Package: "etcd"}, offer(), ""},
		{"channel", model.SubscriptionSpec{Package: "etcd", Channel: "alpha"}, offer(), ""},
		{
			"start in the channel",
			model.SubscriptionSpec{Package: "etcd", Channel: "stable", StartingCSV: "etcd.v1"},
			offer(), "",
		},
		{"start in any channel", model.SubscriptionSpec{Package: "etcd", StartingCSV: "etcd.v3"}, offer(), ""},
		{
			"no such package",
			model.SubscriptionSpec{Package: "vault"},
			gatewaycatalog.Offer{Ready: true, Packages: []string{"etcd"}},
			"/package",
		},
		{"no such channel", model.SubscriptionSpec{Package: "etcd", Channel: "beta"}, offer(), "/channel"},
		{
			"start in another channel",
			model.SubscriptionSpec{Package: "etcd", Channel: "stable", StartingCSV: "etcd.v3"},
			offer(), "/startingCSV",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := subscription.CheckOffer(c.in, c.of)
			if place(err) != c.at || (err == nil) != (c.at == "") {
				t.Errorf("refused %v at %q, want %q", err, place(err), c.at)
			}
		})
	}
}

// TestFirstBundle: a subscription begins with its startingCSV, else with the head of its channel, else of the default
// one.
func TestFirstBundle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   model.SubscriptionSpec
		want string
	}{
		{"default channel", model.SubscriptionSpec{}, "etcd.v2"},
		{"named channel", model.SubscriptionSpec{Channel: "alpha"}, "etcd.v3"},
		{"starting CSV", model.SubscriptionSpec{Channel: "stable", StartingCSV: "etcd.v1"}, "etcd.v1"},
		{"no such channel", model.SubscriptionSpec{Channel: "beta"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, _ := subscription.FirstBundle(c.in, offer().Package); got.Name != c.want {
				t.Errorf("begins with %q, want %q", got.Name, c.want)
			}
		})
	}
	if _, ok := subscription.FirstBundle(model.SubscriptionSpec{}, nil); ok {
		t.Error("a bundle of no package was found")
	}
}

// TestCanonicalConfig: configurations that mean the same are the same bytes, and unknown keys are refused (R-SUB §4.2).
func TestCanonicalConfig(t *testing.T) {
	t.Parallel()
	one, err := subscription.CanonicalConfig(
		[]byte(`{"env": [{"name":"A","value":"1"}], "nodeSelector": {"b":"2","a":"1"}}`))
	if err != nil {
		t.Fatal(err)
	}
	other, err := subscription.CanonicalConfig(
		[]byte(`{"nodeSelector":{"a":"1","b":"2"},"env":[{"value":"1","name":"A"}]}`))
	if err != nil || !bytes.Equal(one, other) {
		t.Errorf("%s and %s, %v: want the same bytes", one, other, err)
	}
	for _, none := range []string{"", "null", "{}"} {
		if got, err := subscription.CanonicalConfig([]byte(none)); got != nil || err != nil {
			t.Errorf("%q is %q, %v; want none", none, got, err)
		}
	}
	for _, wrong := range []string{
		`[]`, `{"replicas": 3}`,
		`{"env": [` + strings.Repeat(`{"name":"A","value":"x"},`, 4000) + `{"name":"A"}]}`,
	} {
		if got, err := subscription.CanonicalConfig([]byte(wrong)); err == nil {
			t.Errorf("%.40s was taken: %s", wrong, got)
		}
	}
}

// TestCheckIdentities: that an upgrade should wait for a person is advice, and a rule with validate=strict (R-TOK-2).
func TestCheckIdentities(t *testing.T) {
	t.Parallel()
	config := []byte(`{"env":[{"name":"ROLEARN","value":"arn:aws:iam::123456789012:role/etcd"}]}`)
	if warnings, err := subscription.CheckIdentities(config, subscription.Automatic,
		""); err != nil || len(warnings) != 1 {
		t.Errorf("warnings %q, %v; want one", warnings, err)
	}
	if _, err := subscription.CheckIdentities(config, subscription.Automatic,
		model.ValidateStrict); place(err) != "/approval" {
		t.Errorf("strict: %v, want a refusal at /approval", err)
	}
	if warnings, err := subscription.CheckIdentities(config, subscription.Manual,
		model.ValidateStrict); err != nil || len(warnings) != 0 {
		t.Errorf("with manual approval: %q, %v; want nothing", warnings, err)
	}
	if _, err := subscription.CheckIdentities([]byte(`{"env":[{"name":"ROLEARN","value":"etcd"}]}`),
		subscription.Manual, ""); err == nil {
		t.Error("a role that is no ARN was taken (R-TOK-3)")
	}
}
