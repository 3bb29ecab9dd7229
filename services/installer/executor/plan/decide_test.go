package plan

import (
	"crypto/ed25519"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
	"github.com/chandler-fleet/chandler/services/installer/executor/steplog"
)

// TestAdmit: DESIGN D6, R-IP-42: what keeps a plan from its next step, whatever the cluster says.
func TestAdmit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 9, 20, 0, 0, 0, time.UTC)
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	stop := &failure.Failure{Class: failure.Stopped, Reason: failure.ReasonStopped}
	for name, c := range map[string]struct {
		grant   func(*protocol.Grant)
		read    func(*scope.Snapshot)
		stopped bool
		begun   bool
		want    string
	}{
		"as granted": {},
		"a record that has gone back": {
			read: func(s *scope.Snapshot) { s.RecordBehind = true }, begun: true,
			want: failure.ReasonBehind,
		},
		"the stop switch": {stopped: true, begun: true, want: failure.ReasonStopped},
		"another plan": {
			grant: func(g *protocol.Grant) { g.Plan = "q" },
			want:  failure.ReasonGrant,
		},
		"another namespace": {
			grant: func(g *protocol.Grant) { g.Namespace = "quays" },
			want:  failure.ReasonGrant,
		},
		"another cluster": {
			grant: func(g *protocol.Grant) { g.Cluster = "d" },
			want:  failure.ReasonGrant,
		},
		"expired": {
			grant: func(g *protocol.Grant) { g.Expires = now },
			want:  failure.ReasonExpired,
		},
		"expired, but begun": {grant: func(g *protocol.Grant) { g.Expires = now }, begun: true},
		"no operator group": {
			read: func(s *scope.Snapshot) { s.Wanted.OperatorGroups = 0 },
			want: failure.ReasonNoGroup,
		},
		"no operator group any more": {
			read:  func(s *scope.Snapshot) { s.Wanted.OperatorGroups = 0 },
			begun: true, want: failure.ReasonNoGroup,
		},
		"several operator groups": {
			read: func(s *scope.Snapshot) { s.Wanted.OperatorGroups = 2 },
			want: failure.ReasonManyGroups,
		},
		"another account": {
			grant: func(g *protocol.Grant) { g.Account = "deployer" },
			want:  failure.ReasonGrant,
		},
		"another account, for what has begun": {grant: func(g *protocol.Grant) { g.Account = "deployer" }, begun: true},
		"the account that the group names": {
			grant: func(g *protocol.Grant) { g.Account = "deployer" },
			read:  func(s *scope.Snapshot) { s.Wanted.OperatorGroup.Spec.ServiceAccountName = "deployer" },
		},
		"Chandler's own namespace": {
			grant: func(g *protocol.Grant) { g.Namespace = kube.SystemNamespace },
			read:  func(s *scope.Snapshot) { s.Wanted.Scope.Namespace = kube.SystemNamespace },
			want:  failure.ReasonReserved,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			grant := protocol.Grant{
				Plan: "p", Digest: "d", Cluster: "c", Namespace: "ports",
				Expires: now.Add(time.Hour),
			}
			if c.grant != nil {
				c.grant(&grant)
			}
			grant, err := grant.Sign(key)
			if err != nil {
				t.Fatal(err)
			}
			a := admission{
				snapshot: &scope.Snapshot{
					Wanted: protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}, OperatorGroups: 1},
				},
				logs: steplog.Config{GrantKey: keys.Accept(key.Public().(ed25519.PublicKey)), ClusterID: "c"}, now: now,
			}
			if c.stopped {
				a.stopped = stop
			}
			if c.read != nil {
				c.read(a.snapshot)
			}
			got := ""
			if f := a.decide(protocol.Plan{ID: "p", Digest: "d", Grant: grant}, c.begun); f != nil {
				got = f.Reason
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestFollowing: R-IP-20: which steps may be taken together.
func TestFollowing(t *testing.T) {
	t.Parallel()
	object := func(group, kind, csv string) render.Object {
		return render.Object{GVK: schema.GroupVersionKind{Group: group, Kind: kind}, Resolving: csv}
	}
	objects := []render.Object{
		// alone: the others name it as owner
		object(kube.GVKCSV.Group, kube.GVKCSV.Kind, "a"), object(kube.GVKCSV.Group, kube.GVKCSV.Kind, "a"),
		// no API has to be established for these
		object(kube.GVKCRD.Group, kube.GVKCRD.Kind, "a"), object("rbac.authorization.k8s.io", "ClusterRole", "a"),
		object("", "ConfigMap", "a"), object("", "Service", "a"),
		object("", "Service", "b"), // another operator
		object("apps", "Deployment", "b"),
		{GVK: render.GVKAPIService, Resolving: "b"},
		{GVK: render.GVKValidatingWebhook, Resolving: "b"},
	}
	for i, want := range map[int]int{0: 1, 1: 1, 2: 2, 4: 2, 6: 1, 7: 1, 8: 2, 10: 0} {
		if got := following(objects, i); got != want {
			t.Errorf("from %d on %d steps are taken together, want %d", i, got, want)
		}
	}
	many := make([]render.Object, 2*maxBatch)
	if got := following(many, 0); got != maxBatch {
		t.Errorf("%d steps are taken together, want %d", got, maxBatch)
	}
}

// TestSameOrigin: after a crash only what the same step wrote, under the same overlays, is not written again.
func TestSameOrigin(t *testing.T) {
	t.Parallel()
	step := map[string]string{scope.AnnotationDigest: "d", scope.AnnotationRendered: "r", scope.AnnotationPlan: "p"}
	if !sameOrigin(step, step) {
		t.Error("the same step")
	}
	for key := range step {
		other := map[string]string{
			scope.AnnotationDigest: "d", scope.AnnotationRendered: "r",
			scope.AnnotationPlan: "p",
		}
		other[key] = "x"
		if sameOrigin(other, step) {
			t.Errorf("another %s counts as the same", key)
		}
	}
}
