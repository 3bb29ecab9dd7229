package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// ObjectType is the type prefix of a rendered object's digest.
const ObjectType = "chandler.object.v1"

// Input is everything that decides what a bundle becomes. The operator group is no part of it: which
// namespaces it serves moves with the cluster, and a plan's digests must not.
type Input struct {
	Content   bundle.Content
	Namespace string // where the operator runs
	// Config is the subscription's spec.config as JSON (R-SUB §4.2); empty without one.
	Config json.RawMessage
}

// Object is one object to apply.
type Object struct {
	GVK       schema.GroupVersionKind
	Namespace string // "" for cluster-scoped objects
	Name      string
	Resolving string         // the CSV that it belongs to
	Body      map[string]any // JSON values as apimachinery has them: int64, float64, string, bool, nil
}

// Digest is the content address of the object.
func (o Object) Digest() (digest.Digest, error) { return digest.JSON(ObjectType, o.Body) }

// String is "Kind namespace/name", for error texts.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.GVK.Kind + " " + o.Name
	}
	return o.GVK.Kind + " " + o.Namespace + "/" + o.Name
}

// renderer carries one rendering; its steps append to out in order.
type renderer struct {
	in     Input
	csv    bundle.CSV
	config config
	// webhooks and called are what the API server is to call, and where.
	webhooks []bundle.WebhookDescription
	called   []called
	out      []Object
}

// Render returns the objects of a bundle in order. Errors are errs.Invalid, for a bundle that breaks a rule.
func Render(in Input) ([]Object, error) {
	csv, err := in.Content.CSV()
	if err != nil {
		return nil, err
	}
	if in.Namespace == "" {
		return nil, errs.New(errs.Invalid, "render %s: no namespace", csv.Name)
	}
	if err := in.Content.CheckGroups(csv); err != nil {
		return nil, err
	}
	cfg, err := parseConfig(in.Config)
	if err != nil {
		return nil, err
	}
	r := &renderer{in: in, csv: csv, config: cfg}
	if r.webhooks, err = csv.WebhookDescriptions(); err != nil {
		return nil, err
	}
	if r.called, err = callees(csv, in.Namespace); err != nil {
		return nil, err
	}
	for _, step := range []func() error{
		r.clusterServiceVersion, r.crds, r.serviceAccounts, r.roles, r.optional,
		r.services, r.deployments, r.callers,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return r.out, nil
}

// add takes an object whose body holds apiVersion, kind and metadata.
func (r *renderer) add(gvk schema.GroupVersionKind, namespace, name string, body map[string]any) {
	body["apiVersion"], body["kind"] = gvk.GroupVersion().String(), gvk.Kind
	meta := child(body, "metadata")
	// The rest is a cluster's own notes on another object, or fields that Kubernetes does not know: published bundles
	// have them, OLM's create drops them, and server-side apply would refuse the object for them.
	maps.DeleteFunc(meta, func(field string, _ any) bool { return field != "labels" && field != "annotations" })
	meta["name"] = name
	if namespace != "" {
		meta["namespace"] = namespace
	}
	delete(body, "status")
	r.out = append(r.out, Object{GVK: gvk, Namespace: namespace, Name: name, Resolving: r.csv.Name, Body: body})
}

// clusterServiceVersion renders the CSV object: the manifest with a label for each API (R-CSV-22).
func (r *renderer) clusterServiceVersion() error {
	body, err := decode(r.csv.Raw)
	if err != nil {
		return err
	}
	meta := child(body, "metadata")
	set(meta, "labels", r.managedLabels(), r.apiLabels())
	r.add(gvkCSV, r.in.Namespace, r.csv.Name, body)
	return nil
}

func (r *renderer) apiLabels() map[string]string {
	labels := map[string]string{}
	crd := func(list []bundle.CRDDescription, value string) {
		for _, d := range list {
			_, group, _ := strings.Cut(d.Name, ".")
			labels[LabelAPIPrefix+hash(apiHashLength, d.Kind, d.Version, group)] = value
		}
	}
	crd(r.csv.Spec.CRDs.Required, "required")
	api := func(list []bundle.APIDescription, value string) {
		for _, d := range list {
			labels[LabelAPIPrefix+hash(apiHashLength, d.Kind, d.Version, d.Group)] = value
		}
	}
	api(r.csv.Spec.APIServices.Required, "required")
	crd(r.csv.Spec.CRDs.Owned, "provided")
	api(r.csv.Spec.APIServices.Owned, "provided")
	return labels
}

// crds renders the bundle's CRDs. They outlive the operator (R-CSV-52), so they are not owned; each
// owner leaves an annotation instead (R-CSV-22).
func (r *renderer) crds() error {
	crds, err := r.in.Content.CRDs()
	if err != nil {
		return err
	}
	for _, o := range crds {
		if o.APIVersion != "apiextensions.k8s.io/v1" {
			return errs.New(errs.Invalid,
				"%s: %s has apiVersion %s, which Kubernetes serves no more; want apiextensions.k8s.io/v1",
				r.csv.Name, o, o.APIVersion).At("/apiVersion", "R-CAT-59")
		}
		body, err := decode(o.Raw)
		if err != nil {
			return err
		}
		if err := r.convert(o.Name, body); err != nil {
			return err
		}
		meta := child(body, "metadata")
		set(meta, "labels", map[string]string{LabelManaged: "true"})
		set(meta, "annotations", r.alongside())
		r.add(gvkCRD, "", o.Name, body)
	}
	return r.checkConverted()
}

// optional renders the objects of R-CAT-53. Namespaced ones go to the operator's namespace whatever
// their manifest says; service accounts were taken with the accounts of the strategy.
func (r *renderer) optional() error {
	others, err := r.in.Content.Others()
	if err != nil {
		return err
	}
	for _, o := range others {
		gvk := schema.FromAPIVersionAndKind(o.APIVersion, o.Kind)
		scope, ok := supported(gvk)
		if !ok {
			return errs.New(errs.Invalid, "%s: %s of %s is not a kind that a bundle may bring", r.csv.Name, o,
				o.APIVersion).At("/kind", "R-CAT-53")
		}
		if gvk == gvkServiceAccount {
			continue
		}
		if scope == clusterScoped && reservedName(o.Name) {
			return errs.New(errs.Invalid, "%s: %s has a name that is reserved for Chandler; rename it", r.csv.Name, o).
				At("/metadata/name", "reserved-name")
		}
		body, err := decode(o.Raw)
		if err != nil {
			return err
		}
		set(child(body, "metadata"), "labels", r.ownerLabels())
		namespace := ""
		if scope == namespaced {
			namespace = r.in.Namespace
		} else {
			set(child(body, "metadata"), "annotations", r.alongside())
		}
		// Of objects that differ in their namespace alone the last one stays: OLM writes one over the other.
		r.out = slices.DeleteFunc(r.out, func(have Object) bool {
			return have.GVK == gvk &&
				have.Namespace == namespace && have.Name == o.Name
		})
		r.add(gvk, namespace, o.Name, body)
	}
	return nil
}

// decode reads a manifest. What it says in the words of Chandler and OLM about owners and installation is dropped: only
// who installs an object may say that.
func decode(raw json.RawMessage) (map[string]any, error) {
	m, err := object(raw)
	if err != nil {
		return nil, err
	}
	if meta, ok := m["metadata"].(map[string]any); ok {
		disown(meta)
	}
	return m, nil
}

func object(raw json.RawMessage) (map[string]any, error) {
	var m map[string]any
	if err := utiljson.Unmarshal(raw, &m); err != nil {
		return nil, errs.New(errs.Invalid, "manifest: %v", err).At("", "R-CAT-51")
	}
	return m, nil
}
