package executor_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const alongside = "operatorframework.io/installed-alongside-"

// readers are the roles that scaffolding tools name metrics-reader, with rights for one path.
func readers(name, path string) string {
	return "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\n" +
		"rules: [{nonResourceURLs: [" + path + "], verbs: [get]}]\n"
}

// bring is a plan of an operator of the namespace's name with more objects.
func (b *bed) bring(t *testing.T, ns string, o operator, manifests ...string) protocol.Plan {
	t.Helper()
	raw := [][]byte{[]byte(o.manifest())}
	for _, m := range manifests {
		raw = append(raw, []byte(m))
	}
	c, err := bundle.FromManifests(raw)
	must(t, err)
	p := b.plan(ns, o.name, planned{content: c, replaces: o.replaces})
	s := b.scope(ns)
	s.Plans = append(s.Plans, p)
	b.publish(s)
	return p
}

// choose adds what approvers say of obstacles to the grant of a plan.
func (b *bed) choose(t *testing.T, ns string, p protocol.Plan, c ...protocol.Choice) {
	t.Helper()
	p.Grant.Choices = c
	var err error
	p.Grant, err = p.Grant.Sign(b.key)
	must(t, err)
	s := b.scope(ns)
	i := slices.IndexFunc(s.Plans, func(o protocol.Plan) bool { return o.ID == p.ID })
	s.Plans[i] = p
	b.publish(s)
}

// checked asks what stands in the way of a plan.
func (b *bed) checked(t *testing.T, ns string, p protocol.Plan) protocol.PlanCheck {
	t.Helper()
	var c protocol.PlanCheck
	must(t, b.Ask(t.Context(), protocol.RPCCheckPlan,
		protocol.PlanQuestion{Namespace: ns, Plan: p, OperatorGroups: 1, OperatorGroup: b.scope(ns).OperatorGroup}, &c))
	return c
}

// uninstalled removes an operator and returns what stays.
func (b *bed) uninstalled(t *testing.T, ns string, p protocol.Plan, csv string) []protocol.Leftover {
	t.Helper()
	s := b.scope(ns)
	x := b.Removal(ns, protocol.Removal{ID: uuid.NewString(), CSV: csv})
	s.Plans, s.Removals = nil, []protocol.Removal{x}
	s.Installed = []protocol.Installed{{CSV: csv, Content: p.Digest, Plan: p.ID}}
	b.publish(s)
	left := b.AwaitRemoval(ns, x.ID,
		func(m protocol.RemovalReport) bool { return m.Phase == protocol.PlanFinished }).Left
	s = b.scope(ns)
	s.Installed, s.Removals = nil, nil
	b.publish(s)
	return left
}

// awaitRole waits until a role gives one path, is that of an operator, and says that these brought it.
func (b *bed) awaitRole(t *testing.T, name, path, holder string, owners ...string) {
	t.Helper()
	await(t, "ClusterRole "+name, func(ctx context.Context) error {
		r, err := b.kube.RbacV1().ClusterRoles().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		by, brought := sharers(r)
		if len(r.Rules) != 1 || r.Rules[0].NonResourceURLs[0] != path || by != holder ||
			!slices.Equal(brought, owners) {
			return fmt.Errorf("it gives %+v, is that of %s, brought by %v", r.Rules, by, brought)
		}
		return nil
	})
}

// sharers are the operator that an object is said to belong to, and those that brought it.
func sharers(o metav1.Object) (by string, brought []string) {
	for key, value := range o.GetAnnotations() {
		if strings.HasPrefix(key, alongside) {
			brought = append(brought, value)
		}
	}
	slices.Sort(brought)
	return o.GetLabels()["olm.owner.namespace"] + "/" + o.GetLabels()["olm.owner"], brought
}

// TestShared: objects that several operators bring under one name (DESIGN §1 Shared objects), on a real API server.
//
//nolint:tparallel // one executor is the subject
func TestShared(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	b.start(b.config("one"))
	for name, test := range map[string]func(*testing.T, *bed){
		"equal": testSharedEqual, "keep": testSharedKeep, "take": testSharedTake, "namespace": testSharedInNamespace,
		"upgrade": testSharedUpgrade, "at once": testSharedAtOnce, "one plan": testSharedInOnePlan,
		"nobody's": testSharedForeign, "override": testCRDOverride,
	} {
		t.Run(name, func(t *testing.T) { test(t, b.on(t)) }) //nolint:paralleltest // see above
	}
}

// testSharedEqual: equal roles of two packages in two namespaces hold up neither, and go with the last. What says who
// brought them, and the order of rights, makes no difference.
func testSharedEqual(t *testing.T, b *bed) {
	one, two := operator{name: "eqone", version: "1.0.0"}, operator{name: "eqtwo", version: "1.0.0"}
	const role = "equal-reader"
	p := b.bring(t, "eq-north", one, readers(role, "/metrics"))
	b.finishes(t, "eq-north", p, one.csv())
	labelled := strings.Replace(readers(role, "/metrics"), "metadata: {",
		"metadata: {labels: {app.kubernetes.io/created-by: eqtwo}, ", 1)
	q := b.bring(t, "eq-south", two, labelled)
	b.finishes(t, "eq-south", q, two.csv())
	b.awaitRole(t, role, "/metrics", "eq-north/"+one.csv(), "eq-north/"+one.csv(), "eq-south/"+two.csv())
	left := b.uninstalled(t, "eq-north", p, one.csv())
	if !slices.ContainsFunc(left, func(l protocol.Leftover) bool {
		return l.Name == role && l.Reason == protocol.LeftOtherOwners &&
			slices.Equal(l.Owners, []string{"eq-south/" + two.csv()})
	}) {
		t.Errorf("left %+v", left)
	}
	b.awaitRole(t, role, "/metrics", "eq-south/"+two.csv(), "eq-south/"+two.csv())
	b.uninstalled(t, "eq-south", q, two.csv())
	_, err := b.kube.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("after the last one: %v", err)
	}
}

// testSharedKeep: different ones are shown with both owners and the difference before anything is written; a choice of
// another finding changes nothing; with keep the operator comes in, and the role stays as it is, also when somebody
// deletes it and the executor starts anew. Uninstalling the one that does not hold it leaves it.
func testSharedKeep(t *testing.T, b *bed) {
	one, two := operator{name: "keepone", version: "1.0.0"}, operator{name: "keeptwo", version: "1.0.0"}
	const role = "keep-reader"
	b.finishes(t, "keep-north", b.bring(t, "keep-north", one, readers(role, "/metrics")), one.csv())
	p := b.bring(t, "keep-south", two, readers(role, "/all"))
	r := b.awaitPlan("keep-south", p.ID, blocked("SharedObjectDiffers"))
	for _, part := range []string{
		"ClusterRole " + role, "keep-north/" + one.csv(), "keep-south/" + two.csv(),
		"/metrics", "/all", "keep or take",
	} {
		if !strings.Contains(r.Message, part) {
			t.Errorf("%q is missing in %q", part, r.Message)
		}
	}
	if r.Class != "conflict" || r.Begun {
		t.Errorf("it is %+v, want a conflict before the first step", r)
	}
	found := b.checked(t, "keep-south", p).Shared
	if len(found) != 1 || found[0].Holder != "keep-north/"+one.csv() || found[0].Operator != "keep-south/"+two.csv() ||
		found[0].Finding == "" ||
		len(found[0].Differences) != 1 || !strings.Contains(string(found[0].Differences[0].Have), "/metrics") ||
		!strings.Contains(string(found[0].Differences[0].Want), "/all") {
		t.Fatalf("found %+v", found)
	}
	keep := protocol.Choice{
		Object: "ClusterRole/" + role, Choice: events.ChoiceKeep, Finding: "sha256:another",
		By: []string{"anna"},
	}
	b.choose(t, "keep-south", p, keep)
	b.looked(t, b.scope("keep-south"))
	b.awaitPlan("keep-south", p.ID, blocked("SharedObjectDiffers"))
	keep.Finding = found[0].Finding
	b.choose(t, "keep-south", p, keep)
	b.finishes(t, "keep-south", p, two.csv())
	b.awaitRole(t, role, "/metrics", "keep-north/"+one.csv(), "keep-north/"+one.csv(), "keep-south/"+two.csv())

	must(t, b.kube.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}))
	b.awaitRole(t, role, "/metrics", "keep-north/"+one.csv(), "keep-north/"+one.csv(), "keep-south/"+two.csv())
	patch := []byte(`{"rules": [{"nonResourceURLs": ["/edited"], "verbs": ["get"]}]}`)
	_, err := b.kube.RbacV1().ClusterRoles().Patch(t.Context(), role, types.MergePatchType, patch,
		metav1.PatchOptions{})
	must(t, err)
	b.awaitRole(t, role, "/metrics", "keep-north/"+one.csv(), "keep-north/"+one.csv(), "keep-south/"+two.csv())
	left := b.uninstalled(t, "keep-south", p, two.csv())
	if !slices.ContainsFunc(left, func(l protocol.Leftover) bool {
		return l.Name == role && slices.Equal(l.Owners, []string{"keep-north/" + one.csv()})
	}) {
		t.Errorf("left %+v", left)
	}
	b.awaitRole(t, role, "/metrics", "keep-north/"+one.csv(), "keep-north/"+one.csv())
}

// testSharedTake: with take the plan's form holds, all of it and nothing of the other's; when its operator goes, the
// other's form comes back.
func testSharedTake(t *testing.T, b *bed) {
	one, two := operator{name: "takeone", version: "1.0.0"}, operator{name: "taketwo", version: "1.0.0"}
	const role = "take-reader"
	labelled := strings.Replace(readers(role, "/metrics"), "metadata: {", "metadata: {labels: {sea.test/one: mine}, ",
		1)
	p := b.bring(t, "take-north", one, labelled)
	b.finishes(t, "take-north", p, one.csv())
	q := b.bring(t, "take-south", two, readers(role, "/all"))
	b.awaitPlan("take-south", q.ID, blocked("SharedObjectDiffers"))
	found := b.checked(t, "take-south", q).Shared
	b.choose(t, "take-south", q, protocol.Choice{
		Object: "ClusterRole/" + role, Choice: events.ChoiceTake,
		Finding: found[0].Finding, By: []string{"anna"},
	})
	b.finishes(t, "take-south", q, two.csv())
	both := []string{"take-north/" + one.csv(), "take-south/" + two.csv()}
	b.awaitRole(t, role, "/all", both[1], both...)
	r, err := b.kube.RbacV1().ClusterRoles().Get(t.Context(), role, metav1.GetOptions{})
	must(t, err)
	if _, there := r.Labels["sea.test/one"]; there {
		t.Errorf("it is mixed of both: %v", r.Labels)
	}
	must(t, b.kube.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}))
	b.awaitRole(t, role, "/all", both[1], both...)
	b.uninstalled(t, "take-south", q, two.csv())
	b.awaitRole(t, role, "/metrics", both[0], both[0])
	b.uninstalled(t, "take-north", p, one.csv())
}

// testSharedInNamespace: what two operators of one namespace have in common is owned by both there, and goes with the
// last.
func testSharedInNamespace(t *testing.T, b *bed) {
	const ns = "shared-ns"
	one, two := operator{name: "nsone", version: "1.0.0"}, operator{name: "nstwo", version: "1.0.0"}
	settings := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: common-settings}\ndata: {color: blue}\n"
	p := b.bring(t, ns, one, settings)
	b.finishes(t, ns, p, one.csv())
	q := b.bring(t, ns, two, settings)
	b.finishes(t, ns, q, two.csv())
	owners := func(want ...string) {
		t.Helper()
		await(t, "ConfigMap of "+strings.Join(want, " and "), func(ctx context.Context) error {
			m, err := b.kube.CoreV1().ConfigMaps(ns).Get(ctx, "common-settings", metav1.GetOptions{})
			if err != nil {
				return err
			}
			return sameOwners(m, want)
		})
	}
	owners(one.csv(), two.csv())
	s := b.scope(ns)
	x := b.Removal(ns, protocol.Removal{ID: uuid.NewString(), CSV: one.csv()})
	s.Plans, s.Removals = []protocol.Plan{q}, []protocol.Removal{x}
	s.Installed = []protocol.Installed{
		{CSV: one.csv(), Content: p.Digest, Plan: p.ID},
		{CSV: two.csv(), Content: q.Digest, Plan: q.ID},
	}
	b.publish(s)
	b.AwaitRemoval(ns, x.ID, func(m protocol.RemovalReport) bool { return m.Phase == protocol.PlanFinished })
	owners(two.csv())
	b.uninstalled(t, ns, q, two.csv())
	await(t, "end of the ConfigMap", func(ctx context.Context) error {
		_, err := b.kube.CoreV1().ConfigMaps(ns).Get(ctx, "common-settings", metav1.GetOptions{})
		return wantNotFound(err)
	})
}

func sameOwners(m *corev1.ConfigMap, want []string) error {
	var have []string
	for _, r := range m.OwnerReferences {
		have = append(have, r.Name)
	}
	slices.Sort(have)
	if m.Data["color"] != "blue" || !slices.Equal(have, want) {
		return fmt.Errorf("it has %v, and its owners are %v", m.Data, have)
	}
	return nil
}

// testSharedUpgrade: an upgrade that changes what others have, too, waits for a person. With keep it goes on, and who
// still wants the form that there was holds it from then on; when that one follows, they agree, and the object changes
// with it.
func testSharedUpgrade(t *testing.T, b *bed) {
	one, two := operator{name: "upone", version: "1.0.0"}, operator{name: "uptwo", version: "1.0.0"}
	const role = "up-reader"
	p := b.bring(t, "up-north", one, readers(role, "/metrics"))
	b.finishes(t, "up-north", p, one.csv())
	q := b.bring(t, "up-south", two, readers(role, "/metrics"))
	b.finishes(t, "up-south", q, two.csv())
	next := func(ns string, o operator, was protocol.Plan) (operator, protocol.Plan) {
		s := b.scope(ns)
		s.Plans, s.Installed = nil, []protocol.Installed{{CSV: o.csv(), Content: was.Digest, Plan: was.ID}}
		b.publish(s)
		newer := operator{name: o.name, version: "2.0.0", replaces: o.csv()}
		return newer, b.bring(t, ns, newer, readers(role, "/all"))
	}
	oneNow, r := next("up-north", one, p)
	waits := b.awaitPlan("up-north", r.ID, blocked("SharedObjectDiffers"))
	if waits.Begun || !strings.Contains(waits.Message, "up-south/"+two.csv()) &&
		!strings.Contains(waits.Message, "up-north/"+one.csv()) {
		t.Errorf("it is %+v", waits)
	}
	found := b.checked(t, "up-north", r).Shared
	b.choose(t, "up-north", r, protocol.Choice{
		Object: "ClusterRole/" + role, Choice: events.ChoiceKeep,
		Finding: found[0].Finding, By: []string{"anna"},
	})
	b.finishes(t, "up-north", r, oneNow.csv())
	b.awaitRole(t, role, "/metrics", "up-south/"+two.csv(), "up-north/"+oneNow.csv(), "up-south/"+two.csv())
	twoNow, s := next("up-south", two, q)
	b.finishes(t, "up-south", s, twoNow.csv())
	b.awaitRole(t, role, "/all", "up-south/"+twoNow.csv(), "up-north/"+oneNow.csv(), "up-south/"+twoNow.csv())
}

// testSharedAtOnce: of two plans that bring the same role in different forms at the same time, one holds it, and the
// other one waits for a person although it has begun. Its choice counts then, too.
func testSharedAtOnce(t *testing.T, b *bed) {
	one, two := operator{name: "onceone", version: "1.0.0"}, operator{name: "oncetwo", version: "1.0.0"}
	const role = "once-reader"
	p, q := b.bring(t, "once-north", one, readers(role, "/metrics")),
		b.bring(t, "once-south", two, readers(role, "/all"))
	var late protocol.PlanReport
	where := ""
	await(t, "one plan that waits and one that is done", func(ctx context.Context) error {
		phases := map[string]protocol.PlanReport{}
		for ns, id := range map[string]string{"once-north": p.ID, "once-south": q.ID} {
			r, _, err := b.report(ctx, ns)
			if err != nil {
				return err
			}
			for _, o := range r.Plans {
				if o.ID == id {
					phases[ns] = o
				}
			}
		}
		for ns, other := range map[string]string{"once-north": "once-south", "once-south": "once-north"} {
			if phases[ns].Reason == "SharedObjectDiffers" && phases[other].Phase == protocol.PlanFinished {
				late, where = phases[ns], ns
				return nil
			}
		}
		return fmt.Errorf("the plans are %+v", phases)
	})
	plan, path := p, "/metrics"
	if where == "once-south" {
		plan, path = q, "/all"
	}
	c := b.checked(t, where, plan)
	if late.Begun && len(c.Shared) != 1 {
		t.Fatalf("of a plan that has begun the check says %+v", c)
	}
	b.choose(t, where, plan, protocol.Choice{
		Object: "ClusterRole/" + role, Choice: events.ChoiceTake,
		Finding: c.Shared[0].Finding, By: []string{"anna"},
	})
	b.awaitPlan(where, plan.ID, phase(protocol.PlanFinished))
	await(t, "form of the late one", func(ctx context.Context) error {
		r, err := b.kube.RbacV1().ClusterRoles().Get(ctx, role, metav1.GetOptions{})
		if err == nil && r.Rules[0].NonResourceURLs[0] != path {
			err = fmt.Errorf("rules %+v", r.Rules)
		}
		return err
	})
}

// testSharedForeign: a role that somebody else made is taken by nobody's choice.
func testSharedForeign(t *testing.T, b *bed) {
	const role = "foreign-reader"
	_, err := b.kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: []rbacv1.PolicyRule{
			{Verbs: []string{"get"}, NonResourceURLs: []string{"/mine"}},
		},
	}, metav1.CreateOptions{})
	must(t, err)
	o := operator{name: "foreignone", version: "1.0.0"}
	p := b.bring(t, "foreign-ns", o, readers(role, "/metrics"))
	b.awaitPlan("foreign-ns", p.ID, blocked("FieldManagerConflict"))
	must(t, b.kube.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}))
	b.finishes(t, "foreign-ns", p, o.csv())
}

// TestSharedCrash: an executor that ends at any point while it takes or keeps a role leaves it so that the next one
// comes to what the person chose.
func TestSharedCrash(t *testing.T) {
	t.Parallel()
	for _, choice := range []string{events.ChoiceKeep, events.ChoiceTake} {
		t.Run(choice, func(t *testing.T) {
			t.Parallel()
			b := newBed(t)
			one, two := operator{name: "crashone", version: "1.0.0"}, operator{name: "crashtwo", version: "1.0.0"}
			const role = "crash-reader"
			stop := b.start(b.config("one"))
			b.finishes(t, "crash-north", b.bring(t, "crash-north", one, readers(role, "/metrics")), one.csv())
			q := b.bring(t, "crash-south", two, readers(role, "/all"))
			b.awaitPlan("crash-south", q.ID, blocked("SharedObjectDiffers"))
			finding := b.checked(t, "crash-south", q).Shared[0].Finding
			stop()
			b.choose(t, "crash-south", q, protocol.Choice{
				Object: "ClusterRole/" + role, Choice: choice,
				Finding: finding, By: []string{"anna"},
			})
			var l ledger
			end := b.chain(t, &l, crashAt("before elect", "elect", "before apply", "applied", "taken"))
			b.awaitPlan("crash-south", q.ID, phase(protocol.PlanFinished))
			holder, path := "crash-north/"+one.csv(), "/metrics"
			if choice == events.ChoiceTake {
				holder, path = "crash-south/"+two.csv(), "/all"
			}
			b.awaitRole(t, role, path, holder, "crash-north/"+one.csv(), "crash-south/"+two.csv())
			must(t, b.kube.RbacV1().ClusterRoles().Delete(t.Context(), role, metav1.DeleteOptions{}))
			b.awaitRole(t, role, path, holder, "crash-north/"+one.csv(), "crash-south/"+two.csv())
			end()
		})
	}
}

// crashAt ends an executor once at each point.
func crashAt(points ...string) func(string) error {
	left := map[string]bool{}
	for _, p := range points {
		left[p] = true
	}
	mu := make(chan struct{}, 1)
	return func(point string) error {
		mu <- struct{}{}
		defer func() { <-mu }()
		if left[point] {
			delete(left, point)
			return errCrash
		}
		return nil
	}
}

// testCRDOverride: R-CRD-4, R-CRD-8. A definition whose change makes objects invalid is changed where an approver said
// so of exactly this change, and of no other one.
func testCRDOverride(t *testing.T, b *bed) {
	const ns = "crd-override"
	b.namespace(t, ns)
	d := &defined{bed: b, t: t, ns: ns, dyn: b.dynamic(t)}
	one, content := d.bundle("1.0.0", "", served{"v1", anySize, true})
	d.install(one, content)
	d.gauge("large", 9)
	two, content := d.bundle("2.0.0", one.csv(), served{"v1", smallSize, true})
	p := d.ask(content)
	d.awaitPlan(ns, p.ID, blocked("CRDUpgradeUnsafe"))
	_, other := d.bundle("2.0.1", one.csv(), served{"v1", "properties: {size: {type: integer, maximum: 4}}", true})
	v, w := b.checked(t, ns, p).CRDs[0], b.checked(t, ns, d.plan(ns, ns, other)).CRDs[0]
	if v.Safe || v.Finding == "" || w.Finding == "" || v.Finding == w.Finding || len(v.OverriddenBy) > 0 {
		t.Fatalf("verdicts %+v and %+v", v, w)
	}
	override := protocol.Choice{
		Object: "CustomResourceDefinition/" + d.crd(), Choice: events.ChoiceOverride,
		Finding: w.Finding, By: []string{"anna"},
	}
	b.choose(t, ns, p, override)
	b.looked(t, b.scope(ns))
	b.awaitPlan(ns, p.ID, blocked("CRDUpgradeUnsafe"))
	override.Finding = v.Finding
	b.choose(t, ns, p, override)
	d.finishes(t, ns, p, two.csv())
	_, err := d.gauges().Patch(t.Context(), "large", types.MergePatchType, []byte(`{"spec":{"size":8}}`),
		metav1.PatchOptions{})
	if err == nil || !apierrors.IsInvalid(err) {
		t.Errorf("the narrower schema is not in force: %v", errors.Unwrap(err))
	}
}

// testSharedInOnePlan: two operators of one plan that bring a role in different forms are met before the first step,
// with the same finding by which their step would ask; equal ones, and objects of each alone, ask nobody.
func testSharedInOnePlan(t *testing.T, b *bed) {
	one, two := operator{name: "planone", version: "1.0.0"}, operator{name: "plantwo", version: "1.0.0"}
	const ns, role, equal = "one-plan", "plan-reader", "plan-equal-reader"
	content := func(o operator, path string) planned {
		c, err := bundle.FromManifests([][]byte{
			[]byte(o.manifest()), []byte(readers(role, path)),
			[]byte(readers(equal, "/same")), []byte(readers(o.name+"-own", path)),
		})
		must(t, err)
		return planned{content: c, pkg: o.name}
	}
	p := b.plan(ns, "planone", content(one, "/metrics"), content(two, "/all"))
	b.want(ns, p)
	r := b.awaitPlan(ns, p.ID, blocked("SharedObjectDiffers"))
	if r.Begun || !strings.Contains(r.Message, ns+"/"+one.csv()) || !strings.Contains(r.Message, ns+"/"+two.csv()) {
		t.Errorf("it is %+v, want a conflict of both before the first step", r)
	}
	found := b.checked(t, ns, p).Shared
	if len(found) != 1 || found[0].Name != role || len(found[0].Differences) != 1 {
		t.Fatalf("found %+v", found)
	}
	b.choose(t, ns, p, protocol.Choice{
		Object: "ClusterRole/" + role, Choice: events.ChoiceTake,
		Finding: found[0].Finding, By: []string{"anna"},
	})
	b.finishes(t, ns, p, one.csv())
	b.finishes(t, ns, p, two.csv())
	path := map[string]string{one.csv(): "/metrics", two.csv(): "/all"}[strings.TrimPrefix(found[0].Operator, ns+"/")]
	b.awaitRole(t, role, path, found[0].Operator, ns+"/"+one.csv(), ns+"/"+two.csv())
}
