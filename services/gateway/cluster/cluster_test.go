package cluster_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/cluster"
	"github.com/chandler-fleet/chandler/services/gateway/rule"
)

type (
	history  = []events.Payload
	settings = events.ClusterSettings
)

// labels is a change of labels: keys and values, of which "" takes the label away.
func labels(pairs ...string) map[string]*string {
	out := map[string]*string{}
	for i := 0; i < len(pairs); i += 2 {
		if out[pairs[i]] = nil; pairs[i+1] != "" {
			out[pairs[i]] = &pairs[i+1]
		}
	}
	return out
}

func relabelled(pairs ...string) events.ClusterLabelsChanged {
	e := events.ClusterLabelsChanged{Labels: map[string]string{}}
	for i := 0; i < len(pairs); i += 2 {
		e.Labels[pairs[i]] = pairs[i+1]
	}
	return e
}

func retainted(pairs ...string) events.ClusterTaintsChanged {
	return events.ClusterTaintsChanged{Taints: relabelled(pairs...).Labels}
}

// manyLabels sets n labels beside those that are there.
func manyLabels(n int) map[string]*string {
	out := map[string]*string{}
	for i := range n {
		out["k"+strconv.Itoa(i)] = new(string)
	}
	return out
}

// manyPairs are the keys and values that manyLabels sets.
func manyPairs(n int) (out []string) {
	for key, value := range manyLabels(n) {
		out = append(out, key, *value)
	}
	return out
}

func TestDecide(t *testing.T) {
	t.Parallel()
	registered := events.ClusterRegistered{Name: "spoke", Credential: "c1:a", Labels: map[string]string{"zone": "eu"}}
	configured := events.ClusterConfigured{Settings: settings{Mirror: "none"}}
	cases := []struct {
		name  string
		given history
		when  cluster.Command
		then  history
		kind  errs.Kind
	}{
		{
			"register", nil,
			cluster.Register{Name: "spoke", Credential: "c1:a", Labels: map[string]string{"zone": "eu"}},
			history{registered},
			"",
		},
		{
			"register twice",
			history{registered},
			cluster.Register{Name: "spoke", Credential: "c1:b"},
			nil,
			errs.AlreadyExists,
		},
		{
			"register one that an agent serves", nil,
			cluster.Register{Name: "spoke", Access: events.AccessAgent},
			history{events.ClusterRegistered{Name: "spoke", Access: events.AccessAgent}},
			"",
		},
		{
			"register one that is hosted, in so many words", nil,
			cluster.Register{Name: "spoke", Access: events.AccessHosted, Credential: "c1:a"},
			history{events.ClusterRegistered{Name: "spoke", Credential: "c1:a"}},
			"",
		},
		{"register with another access", nil, cluster.Register{Name: "spoke", Access: "Tunnel"}, nil, errs.Invalid},
		{
			"give a kubeconfig for one that an agent serves",
			history{events.ClusterRegistered{Name: "spoke", Access: events.AccessAgent}},
			cluster.ReplaceCredential{Credential: "c1:b"},
			nil, errs.Conflict,
		},
		{"register under a bad name", nil, cluster.Register{Name: "Spoke_1"}, nil, errs.Invalid},
		{
			"register with a bad label", nil,
			cluster.Register{Name: "spoke", Labels: map[string]string{"a b": ""}},
			nil,
			errs.Invalid,
		},
		{
			"replace",
			history{registered},
			cluster.ReplaceCredential{Credential: "c1:b"},
			history{events.ClusterCredentialReplaced{Credential: "c1:b"}},
			"",
		},
		{"replace by the same", history{registered}, cluster.ReplaceCredential{Credential: "c1:a"}, nil, ""},
		{"replace for nothing", nil, cluster.ReplaceCredential{Credential: "c1:b"}, nil, errs.NotFound},
		{
			"configure one setting",
			history{registered},
			cluster.Configure{Settings: settings{Mirror: "all"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "all", Drift: "correct", Optional: "monitoring.coreos.com",
				CopiedCSVs: "olmconfig",
			}}},
			"",
		},
		{
			"configure the other one",
			history{registered, configured},
			cluster.Configure{Settings: settings{Drift: "report"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "none", Drift: "report", Optional: "monitoring.coreos.com",
				CopiedCSVs: "olmconfig",
			}}},
			"",
		},
		{"configure the defaults", history{registered}, cluster.Configure{
			Settings: settings{Mirror: "csv", Drift: "correct"},
		}, nil, ""},
		{"configure nothing", history{registered, configured}, cluster.Configure{}, nil, ""},
		{
			"configure a mirror that is not there",
			history{registered},
			cluster.Configure{Settings: settings{Mirror: "some"}},
			nil, errs.Invalid,
		},
		{
			"configure optional kinds",
			history{registered},
			cluster.Configure{Settings: settings{Optional: "none"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "csv", Drift: "correct", Optional: "none", CopiedCSVs: "olmconfig",
			}}},
			"",
		},
		{
			"configure optional kinds that are none",
			history{registered},
			cluster.Configure{Settings: settings{Optional: "monitoring"}},
			nil, errs.Invalid,
		},
		{
			"configure events, which follow the mirrors unless something is said of them",
			history{registered, configured},
			cluster.Configure{Settings: settings{Events: "off", Mirror: "all"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "all", Drift: "correct", Optional: "monitoring.coreos.com", Events: "off",
				CopiedCSVs: "olmconfig",
			}}},
			"",
		},
		{
			"configure events that are neither on nor off",
			history{registered},
			cluster.Configure{Settings: settings{Events: "true"}},
			nil, errs.Invalid,
		},
		{
			"cordon",
			history{registered},
			cluster.Configure{Cordoned: new(true)},
			history{events.ClusterCordoned{}},
			"",
		},
		{
			"cordon what is cordoned",
			history{registered, events.ClusterCordoned{}},
			cluster.Configure{Cordoned: new(true)},
			nil, "",
		},
		{
			"uncordon, with a setting",
			history{registered, events.ClusterCordoned{}},
			cluster.Configure{Cordoned: new(false), Settings: settings{Mirror: "none"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "none", Drift: "correct", Optional: "monitoring.coreos.com", CopiedCSVs: "olmconfig",
			}}, events.ClusterUncordoned{}},
			"",
		},
		{
			"a setting of a cordoned cluster, which stays so",
			history{registered, events.ClusterCordoned{}},
			cluster.Configure{Settings: settings{Mirror: "csv"}},
			nil, "",
		},
		{"cordon what is not there", nil, cluster.Configure{Cordoned: new(true)}, nil, errs.NotFound},
		{
			"register again, which begins anew",
			history{registered, events.ClusterCordoned{}, events.ClusterRemoved{Name: "spoke"}, registered},
			cluster.Configure{Cordoned: new(false)},
			nil, "",
		},
		{
			"configure copied CSVs (R-CFG-1)",
			history{registered},
			cluster.Configure{Settings: settings{CopiedCSVs: "off"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "csv", Drift: "correct", Optional: "monitoring.coreos.com", CopiedCSVs: "off",
			}}},
			"",
		},
		{
			"configure something else, and copied CSVs stay",
			history{registered, events.ClusterConfigured{Settings: settings{CopiedCSVs: "on"}}},
			cluster.Configure{Settings: settings{Mirror: "all"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "all", Drift: "correct", Optional: "monitoring.coreos.com", CopiedCSVs: "on",
			}}},
			"",
		},
		{
			"configure that the OLMConfig says it again",
			history{registered, events.ClusterConfigured{Settings: settings{CopiedCSVs: "on"}}},
			cluster.Configure{Settings: settings{CopiedCSVs: "olmconfig"}},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "csv", Drift: "correct", Optional: "monitoring.coreos.com", CopiedCSVs: "olmconfig",
			}}},
			"",
		},
		{
			"configure copied CSVs that are neither on nor off",
			history{registered},
			cluster.Configure{Settings: settings{CopiedCSVs: "true"}},
			nil, errs.Invalid,
		},
		{
			"configure a policy that is not there",
			history{registered},
			cluster.Configure{Settings: settings{Drift: "ignore"}},
			nil, errs.Invalid,
		},
		{
			"set a label and take one away",
			history{registered},
			cluster.Configure{Labels: labels("stage", "test", "zone", "")},
			history{relabelled("stage", "test")},
			"",
		},
		{
			"take the last label away",
			history{registered},
			cluster.Configure{Labels: labels("zone", "")},
			history{relabelled()},
			"",
		},
		{
			"set the label that is there",
			history{registered},
			cluster.Configure{Labels: labels("zone", "eu", "stage", "")},
			nil, "",
		},
		{
			"set one that changed before",
			history{registered, relabelled("zone", "us")},
			cluster.Configure{Labels: labels("zone", "eu")},
			history{relabelled("zone", "eu")},
			"",
		},
		{
			"configure and label",
			history{registered},
			cluster.Configure{Settings: settings{Mirror: "none"}, Labels: labels("zone", "us")},
			history{events.ClusterConfigured{Settings: settings{
				Mirror: "none", Drift: "correct", Optional: "monitoring.coreos.com",
				CopiedCSVs: "olmconfig",
			}}, relabelled("zone", "us")},
			"",
		},
		{"set a bad label", history{registered}, cluster.Configure{Labels: labels("a b", "c")}, nil, errs.Invalid},
		{
			"set too many labels",
			history{registered},
			cluster.Configure{Labels: manyLabels(rule.MaxLabels)},
			nil,
			errs.Invalid,
		},
		{"label one that is not registered", nil, cluster.Configure{Labels: labels("a", "b")}, nil, errs.NotFound},
		{
			"set a taint without a value and take one away",
			history{registered, retainted("edge", "slow", "dedicated", "a")},
			cluster.Configure{Taints: map[string]*string{"probation": new(string), "edge": nil}},
			history{retainted("probation", "", "dedicated", "a")},
			"",
		},
		{
			"take the last taint away",
			history{registered, retainted("edge", "slow")},
			cluster.Configure{Taints: labels("edge", "")},
			history{retainted()},
			"",
		},
		{
			"set the taint that is there, and take away one that is not",
			history{registered, retainted("edge", "slow")},
			cluster.Configure{Taints: labels("edge", "slow", "dedicated", "")},
			nil, "",
		},
		{
			"label and taint",
			history{registered},
			cluster.Configure{Labels: labels("zone", "us"), Taints: labels("zone", "us")},
			history{relabelled("zone", "us"), retainted("zone", "us")},
			"",
		},
		{"set a bad taint", history{registered}, cluster.Configure{Taints: labels("a b", "c")}, nil, errs.Invalid},
		{"set a bad value", history{registered}, cluster.Configure{Taints: labels("a", "b:c")}, nil, errs.Invalid},
		{
			"set too many taints",
			history{registered, retainted("edge", "slow")},
			cluster.Configure{Taints: manyLabels(rule.MaxLabels)},
			nil,
			errs.Invalid,
		},
		{
			"set as many taints as are allowed",
			history{registered},
			cluster.Configure{Taints: manyLabels(rule.MaxLabels)},
			history{retainted(manyPairs(rule.MaxLabels)...)},
			"",
		},
		{"taint one that is not registered", nil, cluster.Configure{Taints: labels("a", "b")}, nil, errs.NotFound},
		{
			"taint one that was registered again",
			history{registered, retainted("edge", "slow"), events.ClusterRemoved{Name: "spoke"}, registered},
			cluster.Configure{Taints: labels("edge", "slow")},
			history{retainted("edge", "slow")},
			"",
		},
		{
			"register with taints", nil,
			cluster.Register{Name: "spoke", Credential: "c1:a", Taints: map[string]string{"edge": "slow"}},
			history{events.ClusterRegistered{Name: "spoke", Credential: "c1:a"}, retainted("edge", "slow")},
			"",
		},
		{
			"register with a bad taint", nil,
			cluster.Register{Name: "spoke", Credential: "c1:a", Taints: map[string]string{"a b": ""}},
			nil, errs.Invalid,
		},
		{
			"configure one that is not registered", nil,
			cluster.Configure{Settings: settings{Mirror: "all"}},
			nil,
			errs.NotFound,
		},
		{
			"configure one that was registered again",
			history{registered, configured, events.ClusterRemoved{Name: "spoke"}, registered},
			cluster.Configure{Settings: settings{Mirror: "csv"}},
			nil, "",
		},
		{
			"remove an observed one",
			history{registered, events.ClusterObserved{State: "Connected"}},
			cluster.Remove{},
			history{events.ClusterRemoved{Name: "spoke"}},
			"",
		},
		{
			"remove twice",
			history{registered, events.ClusterRemoved{Name: "spoke"}},
			cluster.Remove{},
			nil,
			errs.NotFound,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s cluster.State
			for _, p := range c.given {
				var err error
				if s, err = cluster.Evolve(s, p); err != nil {
					t.Fatal(err)
				}
			}
			got, err := cluster.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestEvolveRefusesForeignEvents(t *testing.T) {
	t.Parallel()
	if _, err := cluster.Evolve(cluster.State{}, events.CatalogRemoved{}); err == nil {
		t.Error("an event of another kind of stream must not pass silently")
	}
}
