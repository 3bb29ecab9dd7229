package bundles_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/test/hubtest"
)

// campaignEnv set to "all" has every operator of the campaign installed, as make test-bundles does.
const campaignEnv = "CHANDLER_TEST_BUNDLES"

// stageLimit bounds the installs, the upgrades and the removals of the whole campaign each, on a busy machine.
const stageLimit = 8 * time.Minute

// life is one operator on its way through the campaign, in the namespace of its package.
type life struct {
	entry
	now     job            // what is installed
	content bundle.Content // of it
	left    []protocol.Leftover
}

// TestBundles takes published operators through their lives at once: installed, upgraded, removed, every second one
// with its custom resource definitions. What is in the cluster afterwards and was not before is exactly what the
// reports of the removals announce, and nothing that was there before is gone (R-IP-20, R-CSV-50, R-UNI-1, R-UNI-2).
func TestBundles(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("short: small bundles stand for real ones")
	}
	c := &campaign{T: t, spoke: newSpoke(t, hubtest.New(t))}
	c.start(hubtest.Quick())
	before := c.snapshot()
	for _, e := range campaignSet(t, os.Getenv(campaignEnv) == "all") {
		c.lives = append(c.lives, &life{entry: e})
	}
	c.install()
	c.fix()
	c.stage("Succeeded", c.lives, c.isInstalled)
	c.checkObjects()
	c.upgrade()
	c.checkObjects()
	c.remove()
	c.checkLeft(before)
}

type campaign struct {
	*testing.T
	*spoke
	lives []*life
}

func (c *campaign) snapshot() snapshot {
	c.Helper()
	s, err := takeSnapshot(c.Context(), c.cluster.RESTConfig())
	must(c, err)
	return s
}

// stage waits for all lives at once and says how long the stage took; a life that does not get there is named.
func (c *campaign) stage(what string, lives []*life, ok func(*life, protocol.ScopeReport) error) {
	c.Helper()
	began := time.Now()
	ctx, cancel := context.WithTimeout(c.Context(), stageLimit)
	defer cancel()
	for _, l := range lives {
		err := c.board.await(ctx, l.Package, stageLimit, func(r protocol.ScopeReport) error { return ok(l, r) })
		if err != nil {
			c.Errorf("%s: %v", what, err)
		}
	}
	if c.Failed() {
		c.FailNow()
	}
	c.Logf("%d operators %s after %s", len(lives), what, time.Since(began).Round(time.Millisecond))
}

// install wants the first version of each.
func (c *campaign) install() {
	for _, l := range c.lives {
		l.content = l.first(c)
		csv, err := l.content.CSV()
		must(c, err)
		c.serve(l.Package, csv.Spec.InstallModes)
		l.now = job{ns: l.Package, csv: csv.Name, plan: c.Plan(
			l.Package, l.Package, hubtest.Bundle{Content: l.content, Allowed: true})}
		c.Want(l.Package, l.now.plan)
	}
}

// fix waits until each operator that brings objects of an API which is not there runs and says which it waits for, and
// then makes it.
func (c *campaign) fix() {
	var needy []*life
	for _, l := range c.lives {
		if l.lacks != "" {
			needy = append(needy, l)
		}
	}
	c.stage("without an API that is missing", needy, func(l *life, r protocol.ScopeReport) error {
		gvk, _ := schema.ParseKindArg(l.lacks)
		for _, operator := range r.CSVs {
			if operator.Name == l.now.csv && slices.ContainsFunc(operator.Components, func(p protocol.Component) bool {
				return p.Status == "Waiting" && strings.Contains(p.Message, gvk.Kind) &&
					strings.Contains(p.Message, gvk.Group)
			}) {
				return succeeded(l.now.csv)(r)
			}
		}
		return fmt.Errorf("it does not say that it waits for %s: %w", l.lacks, errNotYet)
	})
	for _, l := range needy {
		gvk, _ := schema.ParseKindArg(l.lacks)
		must(c, c.bringAPI(c.Context(), *gvk))
	}
}

func (c *campaign) isInstalled(l *life, r protocol.ScopeReport) error { return succeeded(l.now.csv)(r) }

// settle tells the executor what the record holds once plans have ended.
func (c *campaign) settle(l *life) protocol.ScopePlans {
	c.Helper()
	_, digest, err := l.content.Canonical()
	must(c, err)
	s := c.Scope(l.Package)
	s.Plans, s.Installed = nil, []protocol.Installed{{CSV: l.now.csv, Content: string(digest), Plan: l.now.plan.ID}}
	return s
}

// upgrade wants the next version of each that has one.
func (c *campaign) upgrade() {
	var upgraded []*life
	for _, l := range c.lives {
		s := c.settle(l)
		if l.PreviousDir == "" {
			c.Publish(s)
			continue
		}
		replaced := l.now.csv
		l.content = l.head(c)
		csv, err := l.content.CSV()
		must(c, err)
		l.now = job{ns: l.Package, csv: csv.Name, replaced: replaced}
		l.now.plan = c.Plan(l.Package, l.Package,
			hubtest.Bundle{Content: l.content, Replaces: replaced, Allowed: true})
		s.Plans = []protocol.Plan{l.now.plan}
		c.Publish(s)
		upgraded = append(upgraded, l)
	}
	c.stage("upgraded", upgraded, func(l *life, r protocol.ScopeReport) error {
		if err := succeeded(l.now.csv)(r); err != nil {
			return err
		}
		return gone(l.now.replaced)(r)
	})
}

// remove uninstalls all, every second one with all of its definitions, and closes the operator groups.
func (c *campaign) remove() {
	ids := map[*life]string{}
	for i, l := range c.lives {
		r := protocol.Removal{ID: uuid.NewString(), CSV: l.now.csv}
		if i%2 == 0 {
			r.CRDs = []string{"*"}
		}
		r = c.Removal(l.Package, r)
		ids[l] = r.ID
		s := c.settle(l)
		s.Removals = []protocol.Removal{r}
		c.Publish(s)
	}
	c.stage("removed", c.lives, func(l *life, r protocol.ScopeReport) error {
		for _, m := range r.Removals {
			if m.ID == ids[l] && m.Phase == protocol.PlanFinished {
				l.left = m.Left
				return gone(l.now.csv)(r)
			}
		}
		return fmt.Errorf("its removal has not ended: %w", errNotYet)
	})
	for _, l := range c.lives {
		s := c.Scope(l.Package)
		s.Removals, s.Installed, s.OperatorGroups, s.OperatorGroup = nil, nil, 0, protocol.OperatorGroup{}
		c.Publish(s)
	}
}

// checkObjects compares the cluster with what the bundles render to: all of it is there, and of the versions before
// nothing but custom resource definitions.
func (c *campaign) checkObjects() {
	c.Helper()
	hubtest.Await(c, "the objects of what is installed", func(ctx context.Context) error {
		live, err := takeSnapshot(ctx, c.cluster.RESTConfig())
		if err != nil {
			return err
		}
		var errs []error
		for _, l := range c.lives {
			errs = append(errs, c.compare(l, live))
		}
		return errors.Join(errs...)
	})
}

func (c *campaign) compare(l *life, live snapshot) error {
	now, old := c.refs(l.Package, l.content), []protocol.ObjectRef(nil)
	if l.now.replaced != "" {
		old = c.refs(l.Package, l.previous(c))
	}
	missing := slices.DeleteFunc(slices.Clone(now), func(ref protocol.ObjectRef) bool { _, ok := live[ref]; return ok })
	stale := slices.DeleteFunc(old, func(ref protocol.ObjectRef) bool {
		_, ok := live[ref]
		return !ok || slices.Contains(now, ref) || ref.Kind == "CustomResourceDefinition"
	})
	if len(missing)+len(stale) > 0 {
		return fmt.Errorf("%s is Succeeded, without %v and beside %v of the version before", l.now.csv, missing, stale)
	}
	return nil
}

// refs are the objects that a bundle renders to.
func (c *campaign) refs(ns string, content bundle.Content) []protocol.ObjectRef {
	c.Helper()
	var out []protocol.ObjectRef
	for _, o := range hubtest.Objects(c, ns, hubtest.Bundle{Content: content}) {
		out = append(out, refOf(o))
	}
	return out
}

func refOf(o render.Object) protocol.ObjectRef {
	return protocol.ObjectRef{Group: o.GVK.Group, Kind: o.GVK.Kind, Namespace: o.Namespace, Name: o.Name}
}

// checkLeft waits until the cluster holds beside what it held before exactly what the removals announced, the
// namespaces, which are the subscriptions' own, and what Chandler keeps for itself.
func (c *campaign) checkLeft(before snapshot) {
	c.Helper()
	announced, shared := snapshot{}, snapshot{}
	for _, l := range c.lives {
		announced[protocol.ObjectRef{Kind: "Namespace", Name: l.Package}] = nil
		for _, left := range l.left {
			ref := left.ObjectRef
			ref.Version = ""
			if left.Reason == protocol.LeftOtherOwners { // it stays for them, and may go with the last of them
				shared[ref] = nil
				continue
			}
			announced[ref] = nil
		}
		if l.lacks != "" {
			announced[crdOf(l.lacks)] = nil
		}
	}
	hubtest.Await(c, "what the removals leave", func(ctx context.Context) error {
		after, err := takeSnapshot(ctx, c.cluster.RESTConfig())
		if err != nil {
			return err
		}
		added := snapshot{}
		for _, ref := range after.minus(before) {
			if !after.ofKubernetes(ref) && !ofChandler(ref) {
				added[ref] = nil
			}
		}
		may := maps.Clone(announced)
		maps.Copy(may, shared)
		unannounced, missing, gone := added.minus(may), announced.minus(added), before.minus(after)
		if len(unannounced)+len(missing)+len(gone) > 0 {
			return fmt.Errorf(
				"left without being announced: %v\nannounced, and not there: %v\nthere before, and gone: %v",
				unannounced, missing, gone)
		}
		return nil
	})
}
