package olm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/services/gateway/model"
	"github.com/chandler-fleet/chandler/services/gateway/model/fleetmodel"
)

// planSpec is OLM's InstallPlan (R-IP-10): people approve by spec.approved.
type planSpec struct {
	Approval   string   `json:"approval"`
	Approved   bool     `json:"approved"`
	CSVs       []string `json:"clusterServiceVersionNames"`
	Generation int64    `json:"generation"`
	Source     string   `json:"source"`
	Namespace  string   `json:"sourceNamespace"`
}

func (d *Document) readPlan(raw json.RawMessage) error {
	var s planSpec
	if err := strict(raw, &s); err != nil {
		return err
	}
	d.Plan = &Plan{Approved: s.Approved, CSVs: s.CSVs}
	return nil
}

// secret is the part of a Secret that is not metadata.
type secret struct {
	Type       string            `json:"type"`
	Data       map[string][]byte `json:"data"`
	StringData map[string]string `json:"stringData"`
}

// dockerKeys are the types of pull secrets with the key that holds the docker configuration. The older form lacks
// "auths".
var dockerKeys = map[string]string{
	"kubernetes.io/dockerconfigjson": ".dockerconfigjson",
	"kubernetes.io/dockercfg":        ".dockercfg",
}

// readSecret reads a pull secret, or the credentials of a git repository; every other one is skipped. Whether a catalog
// names it is known when all documents are.
func (d *Document) readSecret(raw json.RawMessage) error {
	var s secret
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	data := map[string][]byte{}
	maps.Copy(data, s.Data)
	for key, text := range s.StringData {
		data[key] = []byte(text)
	}
	if read := otherSecrets[s.Type]; read != nil {
		in, err := read(data)
		d.Secret = &in
		return err
	}
	key, ok := dockerKeys[s.Type]
	if !ok {
		d.Skipped = fmt.Sprintf(
			"a Secret of type %q is none that a catalog's source can use (want kubernetes.io/dockerconfigjson, dockercfg, "+
				"basic-auth or ssh-auth): apply it to the cluster with kubectl, or keep it with chandler catalog secret set",
			s.Type)
		return nil
	}
	value := data[key]
	if !json.Valid(value) {
		return fmt.Errorf("data.%s is no JSON", key)
	}
	if key == ".dockercfg" {
		value = slices.Concat([]byte(`{"auths":`), value, []byte("}"))
	}
	d.Secret = &model.SetCatalogSecret{Kind: source.DockerConfig, Value: value}
	return nil
}

// otherSecrets read Kubernetes' other types that a source of catalogs can use.
var otherSecrets = map[string]func(data map[string][]byte) (model.SetCatalogSecret, error){
	"kubernetes.io/basic-auth": func(data map[string][]byte) (model.SetCatalogSecret, error) {
		return credential(source.Basic, data, map[string]string{"username": "username", "password": "password"})
	},
	// Without known host keys any server could answer. Kubernetes names no place for them; Flux and others do.
	"kubernetes.io/ssh-auth": func(data map[string][]byte) (model.SetCatalogSecret, error) {
		return credential(source.SSH, data,
			map[string]string{"ssh-privatekey": "privateKey", "known_hosts": "knownHosts"})
	},
}

// credential has the fields of a kind, which stand under other keys in a Secret.
func credential(
	kind source.SecretKind, data map[string][]byte, keys map[string]string,
) (model.SetCatalogSecret, error) {
	value := map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if len(data[key]) == 0 {
			return model.SetCatalogSecret{}, fmt.Errorf("data.%s is missing: a credential of kind %s needs it", key, kind)
		}
		value[keys[key]] = string(data[key])
	}
	raw, err := json.Marshal(value)
	return model.SetCatalogSecret{Kind: kind, Value: raw}, err
}

// Complete skips pull secrets that no catalog of the documents names: only those are credentials of a source.
func Complete(all []Document) {
	named := map[string]bool{}
	for _, d := range all {
		if d.Catalog != nil {
			for _, s := range d.Catalog.Source.Secrets {
				named[s] = true
			}
		}
	}
	for i := range all {
		if d := &all[i]; d.Secret != nil && !named[d.Name] {
			d.Secret = nil
			d.Skipped = "no CatalogSource beside it names this secret: apply it to the cluster with kubectl, or " +
				"keep it for catalogs with chandler catalog secret set"
		}
	}
}

// readOwn reads what chandler get writes as YAML or JSON: the API's own shape with a kind. What the API says beside the
// intent is read and not used.
func readOwn(raw []byte, kind, where string) ([]Document, error) {
	d := Document{Kind: kind, Where: where}
	var err error
	switch kind {
	case KindSubscription:
		v, e := own[model.Subscription](raw)
		d.Cluster, d.Namespace, d.Name, d.Metadata, d.Subscription, err = v.Cluster, v.Namespace, v.Name, v.Metadata,
			&v.Spec, e
	case KindOperatorGroup:
		v, e := own[model.OperatorGroup](raw)
		d.Cluster, d.Namespace, d.Name, d.Metadata, d.OperatorGroup, err = v.Cluster, v.Namespace, v.Name, v.Metadata,
			&v.Spec, e
		none := map[string]string{} // it says all, so it says that there are none
		v.Spec = KeepNamespace(v.Spec, model.OperatorGroupSpec{NamespaceLabels: none, NamespaceAnnotations: none})
	case KindCatalog:
		v, e := own[model.Catalog](raw)
		d.Cluster, d.Namespace, d.Name, d.Metadata, err = v.Cluster, v.Namespace, v.Name, v.Metadata, e
		d.Catalog = wholeCatalog(v)
	case KindInstallPlan:
		v, e := own[model.InstallPlan](raw)
		d.Cluster, d.Namespace, d.Name, d.Metadata, err = v.Cluster, v.Namespace, v.Name, v.Metadata, e
		d.Plan = &Plan{Approved: v.Approved != nil, Digest: v.Digest}
	default:
		var known bool
		if known, err = d.readOwnWide(raw); known {
			break
		}
		return nil, fmt.Errorf(
			"%s: kind %s of %s is not one that is applied: want ApprovalPolicy, Catalog, FleetSubscription, InstallPlan, "+
				"OperatorGroup, OperatorHub, Role, RoleBinding, Subscription or Webhook", where, kind, Own)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s: %w", where, kind, err)
	case d.Name == "":
		return nil, fmt.Errorf("%s: %s without a name", where, kind)
	}
	return []Document{d}, nil
}

// readOwnWide reads the kinds that belong to the whole fleet.
func (d *Document) readOwnWide(raw []byte) (known bool, err error) {
	switch d.Kind {
	case KindApprovalPolicy:
		v, e := own[model.ApprovalPolicy](raw)
		d.Name, d.Metadata, d.Policy, err = v.Name, v.Metadata, &v.Spec, e
	case KindRole:
		v, e := own[model.AccessRole](raw)
		d.Name, d.Role, err = v.Name, &v.Spec, e
		if v.BuiltIn {
			d.Role, d.Skipped = nil, "it is built in: define one of another name"
		}
	case KindRoleBinding:
		v, e := own[model.RoleBinding](raw)
		d.Name, d.RoleBinding, err = v.Name, &v.Spec, e
	case KindWebhook:
		v, e := own[model.Webhook](raw)
		d.Name, d.Webhook, err = v.Name, &v.Spec, e
	case KindFleetSubscription:
		v, e := own[fleetmodel.FleetSubscription](raw)
		d.Name, d.FleetSubscription, err = v.Name, &v.Spec, e
	case KindOperatorHub:
		v, e := own[model.OperatorHub](raw)
		d.Name, err = hubName, e
		d.Hub = &model.SetOperatorHub{DisableAllDefaultSources: v.DisableAllDefaultSources, Sources: v.Sources}
	default:
		return false, nil
	}
	return true, err
}

func wholeCatalog(v model.Catalog) *Catalog {
	c := &Catalog{Source: v.Source, Display: v.Display, Priority: v.Priority, Whole: true, Disabled: v.Disabled}
	switch {
	case v.Visibility.Namespace != "":
		c.Visibility = "namespace"
	case v.Cluster != "":
		c.Visibility = "cluster"
	}
	return c
}

// own reads a strict T beside apiVersion and kind.
func own[T any](raw []byte) (T, error) {
	var v T
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return v, err
	}
	delete(fields, "apiVersion")
	delete(fields, "kind")
	rest, err := json.Marshal(fields)
	if err != nil {
		return v, err
	}
	dec := json.NewDecoder(bytes.NewReader(rest))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil {
		return v, fmt.Errorf("%s, which Chandler does not know", strings.TrimPrefix(err.Error(), "json: "))
	}
	return v, nil
}
