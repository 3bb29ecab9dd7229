package app_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/installplan"
	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// tideCSV is a ClusterServiceVersion of an operator with a webhook on pods, in two versions: the second one reads
// Secrets and has a privileged container.
const tideCSV = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: tide.v%[1]s
  annotations:
    operatorframework.io/cluster-monitoring: "true"
    operatorframework.io/suggested-namespace-template: '{"metadata": {"labels": {"tier": "quay"}}}'
spec:
  displayName: Tide gauge
  version: %[1]s
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions: {owned: [{name: tides.sea.test, version: v1, kind: Tide}]}
  webhookdefinitions:
  - type: MutatingAdmissionWebhook
    generateName: pods.sea.test
    deploymentName: tide-controller
    containerPort: 443
    targetPort: 9443
    admissionReviewVersions: [v1]
    sideEffects: None
    webhookPath: /pods
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: tide
        rules: [{apiGroups: [""], resources: [%[2]s], verbs: [get, list, watch]}]
      clusterPermissions:
      - serviceAccountName: tide
        rules: [{apiGroups: [sea.test], resources: [tides], verbs: ["*"]}]
      deployments:
      - name: tide-controller
        spec:
          selector: {matchLabels: {app: tide}}
          template:
            metadata: {labels: {app: tide}}
            spec:
              serviceAccountName: tide
              containers:
              - name: manager
                image: registry.example.com/tide@sha256:%[3]s
                securityContext: {privileged: %[4]s}
`

const tideCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tides.sea.test}
spec:
  group: sea.test
  scope: Namespaced
  names: {kind: Tide, listKind: TideList, plural: tides, singular: tide}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {%s: {type: string}}}}}}}]
`

const tideSecret = `apiVersion: v1
kind: Secret
metadata: {name: tide-key}
stringData: {key: "bundled-s3cr3t"}
`

// tideBundle is one of the two versions.
func tideBundle(t *testing.T, version string) bundle.Content {
	t.Helper()
	resource, image, privileged, field := "configmaps", strings.Repeat("1", 64), "false", "height"
	if version == "2.0.0" {
		resource, image, privileged, field = "secrets", strings.Repeat("2", 64), "true", "depth"
	}
	c, err := bundle.FromManifests([][]byte{
		fmt.Appendf(nil, tideCSV, version, resource, image, privileged), fmt.Appendf(nil, tideCRD, field),
		[]byte(tideSecret),
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stored keeps a bundle as the indexer does, and returns its digest.
func (b *bench) stored(c bundle.Content) string {
	b.t.Helper()
	raw, err := digest.Canonical(c)
	if err != nil {
		b.t.Fatal(err)
	}
	_, d, err := bundle.FromCanonical(raw)
	if err != nil {
		b.t.Fatal(err)
	}
	b.exec("catalog-indexer", `insert into catalog.contents (tenant, digest, size, pack) values ('default', $1, $2, $3)`,
		string(d), len(raw), bundle.Pack(raw))
	return string(d)
}

// planned proposes a plan of a version as the resolver does: its digest binds a document with the digest of every
// object.
func (b *bench) planned(t *testing.T, name, version, replaces string, config json.RawMessage) (
	id string, objects []render.Object,
) {
	t.Helper()
	c := tideBundle(t, version)
	content := b.stored(c)
	objects, err := render.Known.Render(render.Known.Newest(), render.Input{
		Content: c, Namespace: "ops", Config: config,
	})
	if err != nil {
		t.Fatal(err)
	}
	id = uuid.NewString()
	p := proposed(id, name, "tide.v"+version, "tide")
	p.Bundles[0].Content, p.Bundles[0].Replaces, p.Bundles[0].Catalog = content, replaces, "fleet"
	p.Rendering = render.Known.Newest()
	doc := installplan.Document{
		Namespace: "ops", Component: p.Component, Input: digest.Digest(p.Input), Rendering: p.Rendering,
		Bundles: p.Bundles, Base: p.Base,
	}
	for _, o := range objects {
		d, err := o.Digest()
		if err != nil {
			t.Fatal(err)
		}
		doc.Steps = append(doc.Steps, installplan.Step{
			Resolving: o.Resolving, Group: o.GVK.Group, Version: o.GVK.Version, Kind: o.GVK.Kind,
			Namespace: o.Namespace, Name: o.Name, Digest: d,
		})
	}
	raw, err := digest.Canonical(doc)
	if err != nil {
		t.Fatal(err)
	}
	d, err := doc.Digest()
	if err != nil {
		t.Fatal(err)
	}
	p.Digest, p.Document, p.Steps = string(d), string(d), len(objects)
	b.exec("resolver", `insert into resolver.plan_documents (tenant, plan, digest, document, effect, properties)
		values ('default', $1, $2, $3, '', '{}')`, id, p.Digest, raw)
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/"+name, p)
	return id, objects
}

// reviewed is a gateway with a subscription that has a configuration, an operator group, and a plan of a first install.
func reviewed(t *testing.T) (b *bench, first string, objects []render.Object) {
	t.Helper()
	b = setup(t)
	b.cluster("spoke")
	b.catalog("fleet")
	in := subscribe("tide", "tidegauge")
	in.Config = json.RawMessage(`{"env": [{"name": "PASSWORD", "value": "configured-s3cr3t"}]}`)
	must[model.Subscription](b, 201, b.do("POST", subscriptions, in))
	must[model.OperatorGroup](b, 201, b.do("POST", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups",
		model.CreateOperatorGroup{Name: "own", OperatorGroupSpec: model.OperatorGroupSpec{
			TargetNamespaces: []string{"ops"},
		}}))
	first, objects = b.planned(t, "install-aaaaa", "1.0.0", "", in.Config)
	return b, first, objects
}

// TestPlanObjects is R-IP-10: an approver sees every object as it will be applied, in the plan's order, and what is
// shown are the bytes that the plan's digest binds. Who may not read a configuration sees which values there are.
func TestPlanObjects(t *testing.T) {
	t.Parallel()
	b, id, objects := reviewed(t)
	path := "/api/v1/installplans/" + id + "/objects"
	type page struct {
		Items []model.PlanObject
		Next  string
	}
	list := must[page](b, 200, b.do("GET", b.seen(path), nil)).Items
	if len(list) != len(objects) || len(list) < 8 {
		t.Fatalf("%d objects, and the plan has %d", len(list), len(objects))
	}
	for i, o := range list {
		d, err := digest.JSON(render.ObjectType, o.Object)
		if err != nil {
			t.Fatal(err)
		}
		want, err := objects[i].Digest()
		if err != nil {
			t.Fatal(err)
		}
		if o.Digest != string(want) || d != want || o.Hidden || o.Step != i+1 || o.Kind != objects[i].GVK.Kind {
			t.Errorf("step %d: %+v with digest %s, want %s", i+1, o, d, want)
		}
	}
	if whole := string(b.do("GET", path, nil).body); !strings.Contains(whole, "configured-s3cr3t") {
		t.Error("who may change the subscription does not see its configuration")
	}
	var paged []model.PlanObject
	for at := path + "?limit=3"; at != ""; {
		p := must[page](b, 200, b.do("GET", at, nil))
		paged = append(paged, p.Items...)
		if at = ""; p.Next != "" {
			at = path + "?limit=3&cursor=" + p.Next
		}
	}
	if diff := cmp.Diff(list, paged); diff != "" {
		t.Errorf("read by pages: %s", diff)
	}
	if l := must[page](b, 200, b.do("GET", path+"?kind=Deployment", nil)).Items; len(l) != 1 {
		t.Errorf("%d Deployments", len(l))
	}
	must[problem](b, 400, b.do("GET", path+"?cursor=WyJhIl0", nil))

	viewer := b.give(model.AddToken{Name: "viewer", Role: model.RoleViewer}).Secret
	for _, of := range []string{"/objects", "/rights", "/diff"} {
		a := b.as(viewer, "GET", "/api/v1/installplans/"+id+of, nil)
		if a.status != 200 || strings.Contains(string(a.body), "s3cr3t") {
			t.Errorf("a viewer at %s: %d %s", of, a.status, a.body)
		}
	}
	hidden := map[string]bool{}
	for _, o := range must[page](b, 200, b.as(viewer, "GET", path, nil)).Items {
		hidden[o.Kind] = hidden[o.Kind] || o.Hidden
		if o.Digest != list[o.Step-1].Digest {
			t.Errorf("step %d has another digest for a viewer", o.Step)
		}
	}
	if !hidden["Deployment"] || !hidden["Secret"] || hidden["CustomResourceDefinition"] {
		t.Errorf("hidden: %v", hidden)
	}

	// The configuration changes: the plan is shown with the one that it was proposed with.
	change := subscribe("tide", "tidegauge").SubscriptionSpec
	change.Config = json.RawMessage(`{"env": [{"name": "PASSWORD", "value": "other"}]}`)
	must[model.Subscription](b, 200, b.do("PUT", subscriptions+"/tide", change))
	if got := must[page](b, 200, b.do("GET", path, nil)).Items; !cmp.Equal(list, got) {
		t.Error("another configuration changes what is shown of a plan that was proposed before")
	}
}

// TestPlanThatCannotBeShown: what is not the plan is never shown as it; content that is gone is told.
func TestPlanThatCannotBeShown(t *testing.T) {
	t.Parallel()
	b, id, _ := reviewed(t)
	path := "/api/v1/installplans/" + id + "/objects"
	must[map[string]any](b, 200, b.do("GET", b.seen(path), nil))
	says := func(status int, want string) {
		t.Helper()
		for _, of := range []string{"objects", "rights", "diff"} {
			p := must[problem](b, status, b.do("GET", "/api/v1/installplans/"+id+"/"+of, nil))
			if !strings.Contains(p.Detail, want) || len(p.Errors) != 1 || p.Errors[0].Rule != "plan-content" {
				t.Errorf("%s: %+v", of, p)
			}
		}
	}
	b.exec("catalog-indexer", `update catalog.contents set digest = 'sha256:away'`)
	says(404, "the manifests of tide.v1.0.0 are not kept any more")
	b.exec("catalog-indexer", `delete from catalog.contents`)
	b.stored(tideBundle(t, "1.0.0"))
	must[map[string]any](b, 200, b.do("GET", path, nil))

	b.exec("resolver", `update resolver.plan_documents set document =
		convert_to(replace(convert_from(document, 'UTF8'), 'tide-controller', 'tide-contr0ller'), 'UTF8')`)
	says(409, "it is not shown")
	b.exec("resolver", `delete from resolver.plan_documents`)
	says(404, "is not kept any more")
	must[problem](b, 404, b.do("GET", "/api/v1/installplans/"+uuid.NewString()+"/objects", nil))
}

// TestPlanWithErasedConfiguration: the objects of a plan whose configuration was erased are not made up.
func TestPlanWithErasedConfiguration(t *testing.T) {
	t.Parallel()
	b, id, _ := reviewed(t)
	must[map[string]any](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+id+"/objects"), nil))
	b.exec("gateway", `delete from gateway.bodies`)
	p := must[problem](b, 404, b.do("GET", "/api/v1/installplans/"+id+"/objects", nil))
	if !strings.Contains(p.Detail, "was erased") {
		t.Errorf("got %+v", p)
	}
}

// upgraded adds to a first install that is done a plan to the second version.
func upgraded(t *testing.T) (b *bench, first, second string) {
	t.Helper()
	b, first, _ = reviewed(t)
	b.fact(events.Installer, events.KindInstallPlan, first, "spoke/ops/install-aaaaa", events.InstallPlanStarted{},
		events.InstallPlanFinished{})
	second, _ = b.planned(t, "install-bbbbb", "2.0.0", "tide.v1.0.0",
		json.RawMessage(`{"env": [{"name": "PASSWORD", "value": "configured-s3cr3t"}]}`))
	return b, first, second
}

// TestPlanRights is R-IP-10 and R-CSV-31: everything that an operator will be allowed to do is told, at a first install
// as well as at an upgrade, with what is dangerous marked and what is new.
func TestPlanRights(t *testing.T) {
	t.Parallel()
	b, first, second := upgraded(t)
	get := func(id string) (model.PlanRights, model.BundleRights) {
		t.Helper()
		r := must[model.PlanRights](b, 200, b.do("GET", b.seen("/api/v1/installplans/"+id+"/rights"), nil))
		if len(r.Bundles) != 1 {
			t.Fatalf("got %+v", r)
		}
		return r, r.Bundles[0]
	}
	dangers := func(r model.BundleRights) (out []string) {
		for _, d := range r.Dangers {
			out = append(out, fmt.Sprintf("%s new=%t everywhere=%t", d.Code, d.New, d.Everywhere))
		}
		return out
	}
	words := func(r model.BundleRights) (out []string) {
		for _, x := range r.Rights {
			out = append(out, fmt.Sprintf("%s %v", x.Words, x.New))
		}
		return out
	}
	r, one := get(first)
	if one.State != model.ReviewFirst || r.Group == nil || r.Group.All || !slices.Equal(r.Group.Namespaces,
		[]string{"ops"}) || one.PodSecurity.Level != "baseline" || len(one.PodSecurity.Why) == 0 {
		t.Errorf("first install: %+v, %+v", r, one.PodSecurity)
	}
	if diff := cmp.Diff([]string{
		"do everything with tides.sea.test in all namespaces and of the cluster [*]", "read configmaps in ops [get list watch]",
	}, words(one)); diff != "" {
		t.Error(diff)
	}
	// What the bundle suggests for its namespace, by its pods and its annotations (issue 13 §4, ADR 0063).
	suggested := func(r model.PlanRights) (out []string) {
		for _, l := range r.SuggestedLabels {
			out = append(out, l.Key+"="+l.Value+" "+l.CSV+" "+l.Reason)
		}
		return out
	}
	if diff := cmp.Diff([]string{
		"openshift.io/cluster-monitoring=true tide.v1.0.0 Monitoring",
		"pod-security.kubernetes.io/enforce=baseline tide.v1.0.0 PodSecurity", "tier=quay tide.v1.0.0 Template",
	}, suggested(r)); diff != "" {
		t.Error(diff)
	}
	if d := dangers(one); !slices.Contains(d, "WebhookOnPods new=true everywhere=false") {
		t.Errorf("a webhook on pods is dangerous: %v", d)
	}

	r, two := get(second)
	if l := suggested(r); !slices.Contains(l, "pod-security.kubernetes.io/enforce=privileged tide.v2.0.0 PodSecurity") {
		t.Errorf("suggested for the second version: %v", l)
	}
	if two.State != model.ReviewCompared || two.Replaces != "tide.v1.0.0" || two.PodSecurity.Level != "privileged" ||
		len(two.Lost) != 1 || two.Lost[0].Resource != "configmaps" {
		t.Errorf("upgrade: %+v", two)
	}
	if diff := cmp.Diff([]string{
		"read secrets in ops [get list watch]", "do everything with tides.sea.test in all namespaces and of the cluster []",
	}, words(two)); diff != "" {
		t.Error(diff)
	}
	for _, want := range []string{
		"ReadsSecrets new=true everywhere=false", "Privileged new=true everywhere=false",
		"WebhookOnPods new=false everywhere=false",
	} {
		if d := dangers(two); !slices.Contains(d, want) {
			t.Errorf("no %s among %v", want, d)
		}
	}

	// A global operator group lifts what holds in the operator's namespaces to the whole cluster (R-OG §7.2).
	must[model.OperatorGroup](b, 200, b.do("PUT", "/api/v1/clusters/spoke/namespaces/ops/operatorgroups/own",
		model.OperatorGroupSpec{}))
	b.until(func() bool {
		r, two = get(second)
		return r.Group != nil && r.Group.All
	})
	if !slices.Contains(dangers(two), "ReadsSecrets new=true everywhere=true") ||
		!strings.HasPrefix(two.Rights[0].Words, "read secrets in all namespaces") {
		t.Errorf("under a global group: %v, %v", dangers(two), words(two))
	}

	// What is not known of the installed version is told, and everything counts as new.
	b.exec("catalog-indexer", `delete from catalog.contents where digest = $1`, two.ReplacedContent)
	_, two = get(second)
	if two.State != model.ReviewUnknown || !strings.Contains(two.Detail, "not kept") || len(two.Rights[1].New) == 0 {
		t.Errorf("got %+v", two)
	}
}

// plainText gets a path as text.
func (b *bench) plainText(path string) string {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, b.url+path, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", "text/plain")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.Body.Close() != nil {
		b.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/plain; charset=utf-8" {
		b.t.Fatalf("%d %s: %s", res.StatusCode, res.Header.Get("Content-Type"), raw)
	}
	return string(raw)
}

// TestPlanDiff: what a plan changes of what is installed is told by object and as a unified diff: images with their
// digests, workloads, rights, webhooks and schemas.
func TestPlanDiff(t *testing.T) {
	t.Parallel()
	b, first, second := upgraded(t)
	path := "/api/v1/installplans/" + second + "/diff"
	d := must[model.PlanDiff](b, 200, b.do("GET", b.seen(path), nil))
	if len(d.Bundles) != 1 || d.Bundles[0].State != model.ReviewCompared || d.Next != "" {
		t.Fatalf("got %+v", d)
	}
	got := map[string]model.ObjectChange{}
	for _, c := range d.Items {
		got[c.Kind] = c
	}
	deployment := got["Deployment"]
	image := func(n string) string { return "registry.example.com/tide@sha256:" + strings.Repeat(n, 64) }
	if diff := cmp.Diff([]model.ImageChange{{Container: "manager", From: image("1"), To: image("2")}},
		deployment.Images); diff != "" || deployment.Area != "Workload" {
		t.Error(diff)
	}
	if i := slices.IndexFunc(deployment.Fields, func(f model.FieldChange) bool {
		return f.Path == "/spec/template/spec/containers/0/securityContext/privileged" && string(f.From) == "false" &&
			string(f.To) == "true"
	}); i < 0 {
		t.Errorf("fields %+v", deployment.Fields)
	}
	if c := got["CustomResourceDefinition"]; c.CRD == nil || len(c.CRD.Schema) == 0 || c.Change != "Changed" {
		t.Errorf("a field of the schema goes: %+v", c)
	}
	if c := got["ClusterServiceVersion"]; c.Change != "Changed" || c.Was != "tide.v1.0.0" || c.Name != "tide.v2.0.0" {
		t.Errorf("got %+v", c)
	}
	if c := got["Secret"]; !c.Minor || got["Deployment"].Minor {
		t.Errorf("of what stays as it is the marks differ alone: %+v", c)
	}
	text := b.plainText(path)
	for _, line := range []string{
		"# tide.v2.0.0: compared with tide.v1.0.0", "--- a/apps/Deployment/ops/tide-controller",
		"\n-        image: " + image("1"), "\n+        image: " + image("2"), "\n-          privileged: false",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	if paged := must[model.PlanDiff](b, 200, b.do("GET", path+"?limit=2", nil)); len(paged.Items) != 2 ||
		paged.Next == "" || must[model.PlanDiff](b, 200, b.do("GET",
		path+"?limit=500&cursor="+url.QueryEscape(paged.Next), nil)).Items[0].Kind != d.Items[2].Kind {
		t.Errorf("got %+v", paged)
	}
	all := must[model.PlanDiff](b, 200, b.do("GET", "/api/v1/installplans/"+first+"/diff", nil))
	for _, c := range all.Items {
		if c.Change != "Added" {
			t.Errorf("at a first install everything comes: %+v", c)
		}
	}
	if text := b.plainText("/api/v1/installplans/" + first + "/diff"); !strings.Contains(text, "--- /dev/null") {
		t.Errorf("got %s", text)
	}
}

// TestPlanComments is R-IP-10: who approves or rejects says why, and others may say something of a plan; the words can
// be erased, and the log has a commitment to them only.
func TestPlanComments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id, other := uuid.NewString(), uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	q := proposed(other, "install-bbbbb", "tidegauge.v1.0.0", "tidegauge")
	b.fact(events.Resolver, events.KindInstallPlan, other, "spoke/ops/install-bbbbb", q)
	path := "/api/v1/installplans/" + id
	b.do("GET", b.seen(path), nil)

	said := must[model.PlanComment](b, 201, b.do("POST", path+"/comments", model.CommentPlan{Text: " why now? "}))
	if said.Number != 1 || said.Text != "why now?" || said.By != "token-admin" || said.Position == "" {
		t.Errorf("got %+v", said)
	}
	viewer := b.give(model.AddToken{Name: "viewer", Role: model.RoleViewer}).Secret
	must[problem](b, 403, b.as(viewer, "POST", path+"/comments", model.CommentPlan{Text: "x"}))
	must[problem](b, 400, b.do("POST", path+"/comments", model.CommentPlan{Text: "  "}))
	must[problem](b, 404, b.do("POST", "/api/v1/installplans/"+uuid.NewString()+"/comments",
		model.CommentPlan{Text: "x"}))
	for _, reason := range []string{"the storm is over", "the storm is over", "nobody will read this"} {
		// The approval of somebody who has approved changes nothing, and keeps no words.
		must[model.InstallPlan](b, 200, b.do("POST", path+"/approve",
			model.ApprovePlan{Digest: p.Digest, Reason: reason}))
	}
	ended := must[model.InstallPlan](b, 200, b.do("POST", "/api/v1/installplans/"+other+"/reject",
		model.RejectPlan{Reason: "not before winter"}))
	b.position = ended.Position
	list := func(bearer, id, query string) (out []string, next string) {
		t.Helper()
		l := must[struct {
			Items []model.PlanComment
			Next  string
		}](b, 200, b.as(bearer, "GET", "/api/v1/installplans/"+id+"/comments?minPosition="+b.position+query, nil))
		for _, c := range l.Items {
			out = append(out, fmt.Sprintf("%d %s %s: %s", c.Number, c.By, c.About, c.Text))
		}
		return out, l.Next
	}
	got, _ := list(viewer, id, "")
	if diff := cmp.Diff([]string{
		"1 token-admin : why now?", "2 token-admin Approval: the storm is over",
	}, got); diff != "" {
		t.Error(diff)
	}
	if got, _ = list(viewer, other, ""); !slices.Equal(got, []string{"1 token-admin Rejection: not before winter"}) {
		t.Errorf("got %v", got)
	}
	one, next := list(viewer, id, "&limit=1")
	two, _ := list(viewer, id, "&limit=1&cursor="+next)
	if len(one) != 1 || len(two) != 1 || one[0] == two[0] {
		t.Errorf("by pages: %v, %v", one, two)
	}
	if n := b.count(`select count(*) from gateway.bodies where kind = 'plan-reason'`); n != 3 {
		t.Errorf("%d words are kept, want the comment and two reasons", n)
	}
	if n := b.count(`select count(*) from eventlog.events where position(convert_to('why now', 'UTF8') in body) > 0
		or position(convert_to('storm', 'UTF8') in body) > 0`); n != 0 {
		t.Error("an event holds the words")
	}
	must[map[string]any](b, 200, b.do("DELETE", "/api/v1/bodies/"+said.Body, nil))
	if got, _ = list(viewer, id, ""); len(got) != 2 || got[0] != "1 token-admin : (erased)" {
		t.Errorf("after it was erased: %v", got)
	}
	if v := must[model.InstallPlan](b, 200, b.do("GET", path, nil)); v.Comments != 2 {
		t.Errorf("the plan has %d comments", v.Comments)
	}
}

// TestPlansByName: a plan is named by its name as well as by its id, everywhere; a name that several have is a conflict
// that says where they are, among those that the caller may see.
func TestPlansByName(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.cluster("spoke")
	b.cluster("west")
	put := func(cluster, name string) events.InstallPlanProposed {
		t.Helper()
		p := proposed(uuid.NewString(), name, "tidegauge.v1.0.0", "tidegauge")
		p.Cluster = cluster
		b.fact(events.Resolver, events.KindInstallPlan, p.Plan, cluster+"/ops/"+name, p)
		return p
	}
	one, first := put("spoke", "install-one"), put("spoke", "install-two")
	second := put("west", "install-two")
	got := must[model.InstallPlan](b, 200, b.do("GET", b.seen("/api/v1/installplans/install-one"), nil))
	if got.ID != one.Plan {
		t.Errorf("got %+v", got)
	}
	p := must[problem](b, 409, b.do("GET", "/api/v1/installplans/install-two", nil))
	for _, want := range []string{"spoke/ops (" + first.Plan, "west/ops (" + second.Plan} {
		if !strings.Contains(p.Detail, want) {
			t.Errorf("%q does not name %s", p.Detail, want)
		}
	}
	got = must[model.InstallPlan](b, 200, b.do("GET", "/api/v1/installplans/install-two?cluster=west&namespace=ops", nil))
	if got.ID != second.Plan {
		t.Errorf("got %+v", got)
	}
	must[problem](b, 404, b.do("GET", "/api/v1/installplans/install-none", nil))
	must[problem](b, 404, b.do("GET", "/api/v1/installplans/install-one?cluster=west", nil))

	// Who sees one of the two means that one.
	made := b.give(model.AddToken{Name: "west", Role: model.RoleNone})
	secret := made.Secret
	b.bind("west", "approver", made.Actor, model.AccessScope{Clusters: []string{"west"}})
	if got = must[model.InstallPlan](b, 200, b.as(secret, "GET", "/api/v1/installplans/install-two", nil)); got.ID !=
		second.Plan {
		t.Errorf("got %+v", got)
	}
	must[problem](b, 404, b.as(secret, "GET", "/api/v1/installplans/install-one", nil))
	must[problem](b, 404, b.as(secret, "POST", "/api/v1/installplans/install-one/approve",
		model.ApprovePlan{Digest: one.Digest}))
	got = must[model.InstallPlan](b, 200, b.as(secret, "POST", "/api/v1/installplans/install-two/approve",
		model.ApprovePlan{Digest: second.Digest}))
	if got.ID != second.Plan || got.Phase != "Installing" {
		t.Errorf("got %+v", got)
	}
	got = must[model.InstallPlan](b, 200, b.do("POST", "/api/v1/installplans/install-one/reject", model.RejectPlan{}))
	if got.ID != one.Plan || got.Phase != "Rejected" {
		t.Errorf("got %+v", got)
	}
}
