package olm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

const (
	// maxDocuments bounds the documents of one file: people write them by hand.
	maxDocuments = 10_000
	// maxFile bounds one file.
	maxFile = 32 << 20
)

// Kinds that Read takes.
const (
	KindSubscription  = "Subscription"
	KindOperatorGroup = "OperatorGroup"
	KindCatalogSource = "CatalogSource"
	KindOperatorHub   = "OperatorHub"
	KindInstallPlan   = "InstallPlan"
	// KindNamespace, KindOLMConfig and KindSecret come in the same files. Of a Namespace the labels are kept, with the
	// operator group in it.
	KindNamespace = "Namespace"
	KindOLMConfig = "OLMConfig"
	KindSecret    = "Secret"
	// KindOperatorCondition is what an operator and the administrators of its cluster say to each other.
	KindOperatorCondition = "OperatorCondition"
	// KindApprovalPolicy is Chandler's own.
	KindApprovalPolicy = "ApprovalPolicy"
	// KindRole and KindRoleBinding say who may do what in Chandler; those of Kubernetes are of another group.
	KindRole        = "Role"
	KindRoleBinding = "RoleBinding"
	// KindWebhook sends events to an address; those of Kubernetes are others.
	KindWebhook = "Webhook"
	// KindFleetSubscription is an operator for many clusters.
	KindFleetSubscription = "FleetSubscription"
	// KindCatalog is what chandler get writes of a catalog.
	KindCatalog = "Catalog"
)

// Own is the API version of Chandler's own kinds, and of what chandler get writes.
const Own = "chandler-fleet.io/v1"

// hubName is the name of the one OperatorHub.
const hubName = "cluster"

// groups are the API versions of each kind.
var groups = map[string][]string{
	KindSubscription:  {"operators.coreos.com/v1alpha1"},
	KindOperatorGroup: {"operators.coreos.com/v1", "operators.coreos.com/v1alpha2"},
	KindCatalogSource: {"operators.coreos.com/v1alpha1"},
	KindOperatorHub:   {"config.openshift.io/v1"},

	KindInstallPlan: {"operators.coreos.com/v1alpha1"},
	KindNamespace:   {"v1"},
	KindOLMConfig:   {"operators.coreos.com/v1"},
	KindSecret:      {"v1"},

	KindOperatorCondition: {"operators.coreos.com/v1", "operators.coreos.com/v2"},

	KindApprovalPolicy: {Own},
	KindRole:           {Own},
	KindRoleBinding:    {Own},
	KindWebhook:        {Own},

	KindFleetSubscription: {Own},
}

// Document is one object of a file: exactly one of the specs is set, or none and Skipped says why.
type Document struct {
	Kind      string
	Cluster   string // that the document itself names, as what chandler get writes does
	Namespace string // "" when the file does not say
	Name      string
	Where     string // file and number, for messages

	// Metadata are the labels and annotations of a subscription, an operator group, a catalog, an approval policy or a
	// plan.
	Metadata model.Metadata

	Subscription      *model.SubscriptionSpec
	OperatorGroup     *model.OperatorGroupSpec
	Catalog           *Catalog
	Hub               *model.SetOperatorHub // of the whole fleet, whatever the cluster
	Policy            *model.ApprovalPolicySpec
	Role              *model.RoleSpec
	RoleBinding       *model.RoleBindingSpec
	Webhook           *model.WebhookSpec
	FleetSubscription *fleetmodel.FleetSubscriptionSpec
	Plan              *Plan
	Secret            *model.SetCatalogSecret // of the whole fleet

	ClusterParts

	// Skipped says why there is nothing to do for the document.
	Skipped string

	// Notes are sentences about what is accepted and has no effect.
	Notes []string
}

// ClusterParts are what documents say of a cluster itself, and not of OLM's intents in it.
type ClusterParts struct {
	// CopiedCSVs is the setting of the cluster that an OLMConfig says; "" of other kinds.
	CopiedCSVs string
	// NamespaceLabels are those of a Namespace; of no other kind, not nil.
	NamespaceLabels map[string]string
	// NamespaceAnnotations are those of a Namespace, not nil, that an operator group may keep.
	NamespaceAnnotations map[string]string
	// Overrides are those of an OperatorCondition, perhaps none; of no other kind, not nil.
	Overrides *model.SetOverrides
	// Joined says that an operator group of the same documents has the labels and annotations of the Namespace.
	Joined bool
}

// Fleet says whether the document is about the whole fleet: neither cluster nor namespace is wanted for it.
func (d *Document) Fleet() bool {
	return d.Hub != nil || d.Policy != nil || d.Role != nil || d.RoleBinding != nil || d.Webhook != nil ||
		d.FleetSubscription != nil ||
		d.Secret != nil || d.Skipped != "" || d.Catalog != nil &&
		d.Catalog.Whole && d.Cluster == ""
}

// On are the clusters that the document is for: the one that it names, else those that were given.
func (d *Document) On(given []string) []string {
	if d.Cluster != "" {
		return []string{d.Cluster}
	}
	return given
}

// Catalog is what Chandler takes of a CatalogSource.
type Catalog struct {
	Source   model.CatalogSource
	Display  *model.CatalogDisplay
	Priority int32

	// Whole says that the document holds what a CatalogSource cannot say, too.
	Whole      bool
	Visibility string
	Disabled   bool
}

// Plan is what Chandler takes of an InstallPlan: whether it is approved, and what it is about.
type Plan struct {
	Approved bool
	Digest   string   // of the content; "" where the document does not say
	CSVs     []string // that it installs; none where the document does not say
}

type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
		// Some annotations mean something on a CatalogSource and on an OperatorGroup.
		Annotations map[string]string `json:"annotations"`
		Labels      map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec  json.RawMessage   `json:"spec"`
	Items []json.RawMessage `json:"items"` // of a List
}

// Read reads every document of r, YAML or JSON; name stands in messages. All that is wrong is said at once.
func Read(r io.Reader, name string) ([]Document, error) {
	limited := &io.LimitedReader{R: r, N: maxFile + 1}
	documents := yaml.NewYAMLReader(bufio.NewReader(limited))
	var all []Document
	var wrong []error
	for n := 1; ; n++ {
		raw, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil && limited.N == 0 {
			err = fmt.Errorf("larger than the limit of %d bytes", maxFile)
		}
		if err == nil && n > maxDocuments {
			err = fmt.Errorf("more than %d documents", maxDocuments)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		found, err := readDocument(raw, fmt.Sprintf("%s, document %d", name, n))
		all = append(all, found...)
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	return all, nil
}

func readDocument(raw []byte, where string) ([]Document, error) {
	j, err := sigsyaml.YAMLToJSONStrict(raw)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if err := alone(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	if len(bytes.TrimSpace(j)) == 0 || string(j) == "null" {
		return nil, nil
	}
	return readObject(j, where)
}

func readObject(raw []byte, where string) ([]Document, error) {
	var o object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%s: not an object of Kubernetes: %w", where, err)
	}
	if strings.HasSuffix(o.Kind, "List") && o.Items != nil {
		return readList(o, where)
	}
	if o.APIVersion == Own && o.Metadata.Name == "" {
		return readOwn(raw, o.Kind, where)
	}
	versions, known := groups[o.Kind]
	switch {
	case o.Kind == "":
		return nil, fmt.Errorf("%s: no kind", where)
	case !known:
		return nil, fmt.Errorf("%s: kind %q is not one that Chandler takes: want %s", where, o.Kind,
			strings.Join(slices.Sorted(maps.Keys(groups)), ", "))
	case !slices.Contains(versions, o.APIVersion):
		return nil, fmt.Errorf("%s: %s of apiVersion %q: want %s", where, o.Kind, o.APIVersion,
			strings.Join(versions, " or "))
	case o.Metadata.Name == "":
		return nil, fmt.Errorf("%s: %s without metadata.name", where, o.Kind)
	}
	d := Document{Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name, Where: where}
	err := knownFields(raw, o.Kind)
	if err == nil {
		err = d.read(o, raw)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %s %s: %w", where, o.Kind, o.Metadata.Name, err)
	}
	d.noteMetadata(o)
	return []Document{d}, nil
}

// meant are annotations that say something else to Chandler, by kind: fields of the intent do.
var meant = map[string][]string{
	KindCatalogSource: {model.AnnotationTemplate},
	KindOperatorGroup: {model.AnnotationProvidedAPIs, model.AnnotationExcludeGlobal},
}

// noteMetadata keeps labels and annotations where the kind has a place for them, and says which it does not keep. What
// kubectl notes for itself is nobody's intent, and keys by which objects of operators are found come from a cluster.
func (d *Document) noteMetadata(o object) {
	if d.Skipped != "" || d.NamespaceLabels != nil {
		return
	}
	place := d.Subscription != nil || d.OperatorGroup != nil || d.Catalog != nil || d.Policy != nil || d.Plan != nil
	var lost []string
	keep := func(what string, values map[string]string) map[string]string {
		var kept map[string]string
		for _, key := range slices.Sorted(maps.Keys(values)) {
			switch {
			case slices.Contains(meant[d.Kind], key):
			case !place || render.OwnWord(key):
				lost = append(lost, what+" "+key)
			case kept == nil:
				kept = map[string]string{key: values[key]}
			default:
				kept[key] = values[key]
			}
		}
		return kept
	}
	given := model.Metadata{Labels: o.Metadata.Labels, Annotations: o.Metadata.Annotations}.Kept()
	d.Metadata = model.Metadata{Labels: keep("label", given.Labels), Annotations: keep("annotation", given.Annotations)}
	if len(lost) == 0 {
		return
	}
	why := "Chandler has no place for labels and annotations of this kind"
	if place {
		why = "by these keys objects of operators are found in clusters"
	}
	d.Notes = append(d.Notes, strings.Join(lost, ", ")+": not kept, "+why)
}

func readList(o object, where string) ([]Document, error) {
	var all []Document
	var wrong []error
	for i, item := range o.Items {
		found, err := readObject(item, fmt.Sprintf("%s, item %d", where, i+1))
		all = append(all, found...)
		wrong = append(wrong, err)
	}
	return all, errors.Join(wrong...)
}

func (d *Document) read(o object, raw json.RawMessage) error {
	spec, annotations := o.Spec, o.Metadata.Annotations
	switch d.Kind {
	case KindSubscription:
		return d.readSubscription(spec)
	case KindOperatorGroup:
		return d.readOperatorGroup(spec, annotations)
	case KindOperatorHub:
		return d.readHub(spec)
	case KindApprovalPolicy:
		return d.readPolicy(spec)
	case KindRole:
		d.Role = &model.RoleSpec{}
		return d.readWide(spec, "a role", d.Role)
	case KindRoleBinding:
		d.RoleBinding = &model.RoleBindingSpec{}
		return d.readWide(spec, "a role binding", d.RoleBinding)
	case KindWebhook:
		d.Webhook = &model.WebhookSpec{}
		return d.readWide(spec, "a webhook", d.Webhook)
	case KindFleetSubscription:
		return d.readFleetSubscription(spec)
	case KindInstallPlan:
		return d.readPlan(spec)
	case KindSecret:
		return d.readSecret(raw)
	case KindNamespace:
		return d.readNamespace(o)
	case KindOperatorCondition:
		return d.readCondition(spec)
	case KindOLMConfig:
		return d.readOLMConfig(spec)
	default:
		return d.readCatalog(spec, annotations)
	}
}

// strict refuses fields that into does not have.
func strict(raw json.RawMessage, into any) error {
	if len(raw) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		text := strings.TrimPrefix(err.Error(), "json: ")
		if field, ok := strings.CutPrefix(text, "unknown field "); ok {
			return fmt.Errorf("spec has the field %s, which Chandler does not know", field)
		}
		return fmt.Errorf("spec: %s", text)
	}
	return nil
}
