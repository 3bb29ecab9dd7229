package render

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// What the certificate of a Deployment is called (R-CSV-40, R-CSV-43).
const (
	// AnnotationCAHash is the hash of the CA, on the Secret and on the pods that are to start again with it.
	AnnotationCAHash = "olmcahash"
	// KeyCA is the key of the Secret that holds the CA.
	KeyCA = "olmCAKey"

	volumeAPIServer = "apiservice-cert"
	volumeWebhook   = "webhook-cert"
	mountAPIServer  = "/apiserver.local.config/certificates"
	mountWebhook    = "/tmp/k8s-webhook-server/serving-certs"
)

const (
	// systemNamespace holds the role that lets an API server read how callers are authenticated.
	systemNamespace = "kube-system"
	authReader      = "extension-apiserver-authentication-reader"
	authDelegator   = "system:auth-delegator"
)

// Serving is a Deployment that the API server calls, for webhooks or aggregated APIs.
type Serving struct {
	Deployment string
	Service    string
	Secret     string   // of type kubernetes.io/tls: tls.crt, tls.key, KeyCA
	Hosts      []string // names of the Service, as in the certificate
}

// called is one of them with what its objects are made of.
type called struct {
	Serving

	account  string
	selector map[string]string
	ports    []port
}

type port struct {
	number int32
	target any // number or name
}

// ServingOf returns the Deployments of an operator that the API server calls, in the strategy's order. Errors
// are those of CheckServing.
func ServingOf(csv bundle.CSV, namespace string) ([]Serving, error) {
	list, err := callees(csv, namespace)
	if err != nil {
		return nil, err
	}
	out := make([]Serving, len(list))
	for i, c := range list {
		out[i] = c.Serving
	}
	return out, nil
}

// ServiceName is the name of the Service before a Deployment; a Service's name has no dots.
func ServiceName(deployment string) string {
	const suffix = "-service"
	name := strings.ReplaceAll(deployment, ".", "-")
	if len(name)+len(suffix) > maxName {
		h := hash(nameHashLength, name)
		name = strings.TrimRight(name[:maxName-len(suffix)-len(h)-1], "-") + "-" + h
	}
	return name + suffix
}

// SecretName is the name of the Secret that holds the certificate of a Service.
func SecretName(service string) string { return service + "-cert" }

// callees are the Deployments that webhooks and owned APIs name, each once.
func callees(csv bundle.CSV, namespace string) ([]called, error) {
	webhooks, err := csv.WebhookDescriptions()
	if err != nil {
		return nil, err
	}
	if err := checkServing(csv, webhooks); err != nil {
		return nil, err
	}
	var out []called
	for _, d := range csv.Spec.Install.Spec.Deployments {
		ports, err := portsOf(csv, webhooks, d.Name)
		if err != nil {
			return nil, err
		}
		if len(ports) == 0 {
			continue
		}
		spec, err := d.Typed()
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "%s", csv.Name)
		}
		c := called{account: spec.Template.Spec.ServiceAccountName, ports: ports}
		if c.account == "" {
			c.account = defaultAccount
		}
		if spec.Selector != nil {
			c.selector = spec.Selector.MatchLabels
		}
		if len(c.selector) == 0 { // a Service selects by labels alone: by those that all pods of the Deployment bear
			c.selector = spec.Template.Labels
		}
		service := ServiceName(d.Name)
		host := service + "." + namespace
		c.Serving = Serving{
			Deployment: d.Name, Service: service, Secret: SecretName(service),
			Hosts: []string{host, host + ".svc", host + ".svc.cluster.local"},
		}
		out = append(out, c)
	}
	return out, nil
}

// portsOf are the ports at which a Deployment is called, each once, in the order in which they are named.
func portsOf(csv bundle.CSV, webhooks []bundle.WebhookDescription, deployment string) ([]port, error) {
	var out []port
	add := func(p port) error {
		for _, have := range out {
			if have.number != p.number {
				continue
			}
			if have.target != p.target {
				return errs.New(errs.Invalid,
					"%s: deployment %s is called at port %d with two target ports, %v and %v; give each its own port",
					csv.Name, deployment, p.number, have.target, p.target).At("/spec/webhookdefinitions", "R-CSV-42")
			}
			return nil
		}
		out = append(out, p)
		return nil
	}
	for i, w := range webhooks {
		if w.DeploymentName != deployment {
			continue
		}
		target, err := targetPort(w)
		if err != nil {
			return nil, errs.New(errs.Invalid, "%s: %v", csv.Name, err).At(
				fmt.Sprintf("/spec/webhookdefinitions/%d/targetPort", i), "R-CSV-42")
		}
		if err := add(port{w.Port(), target}); err != nil {
			return nil, err
		}
	}
	for _, a := range csv.Spec.APIServices.Owned {
		if a.DeploymentName != deployment {
			continue
		}
		if err := add(port{a.Port(), int64(a.Port())}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func targetPort(w bundle.WebhookDescription) (any, error) {
	if len(w.TargetPort) == 0 || string(w.TargetPort) == "null" {
		return int64(w.Port()), nil
	}
	var number int64
	if err := json.Unmarshal(w.TargetPort, &number); err == nil {
		return number, nil
	}
	var name string
	if err := json.Unmarshal(w.TargetPort, &name); err != nil {
		return nil, errs.New(errs.Invalid, "webhook %s: target port %s is neither a number nor a name", w.GenerateName,
			w.TargetPort)
	}
	return name, nil
}

// services renders what lets the API server call a Deployment: its Service, the right of its account to read the
// Secret with the certificate, and to ask who is calling (R-CSV-40, R-CSV-43). The Secret is not here: it is
// drawn in the cluster. It makes the names of objects outside the namespace distinct.
func (r *renderer) services() error {
	for _, c := range r.called {
		if err := r.service(c); err != nil {
			return err
		}
		read := map[string]any{
			"apiGroups": []any{""}, "resources": []any{"secrets"}, "resourceNames": []any{c.Secret},
			"verbs": []any{"get"},
		}
		r.addOwned(gvkRole, r.in.Namespace, c.Secret, map[string]any{"rules": []any{read}})
		r.bind(gvkRoleBinding, r.in.Namespace, c.Secret, gvkRole.Kind, c.Secret, c.account)
		elsewhere := c.Service + "-" + hash(nameHashLength, r.in.Namespace, c.Service)
		r.bind(gvkClusterRoleBinding, "", elsewhere+"-"+authDelegator, gvkClusterRole.Kind, authDelegator, c.account)
		r.bind(gvkRoleBinding, systemNamespace, elsewhere+"-auth-reader", gvkRole.Kind, authReader, c.account)
	}
	return nil
}

func (r *renderer) service(c called) error {
	if len(c.selector) == 0 {
		return errs.New(errs.Invalid,
			"%s: deployment %s serves webhooks or APIs, but its pods bear no labels, by which a Service could find them",
			r.csv.Name, c.Deployment).At("/spec/install/spec/deployments", "R-CSV-40")
	}
	var ports []any
	for _, p := range c.ports {
		ports = append(ports, map[string]any{
			"name": strconv.Itoa(int(p.number)), "port": int64(p.number),
			"protocol": "TCP", "targetPort": p.target,
		})
	}
	i := slices.IndexFunc(r.out, func(o Object) bool { return o.GVK == gvkService && o.Name == c.Service })
	if i < 0 {
		spec := map[string]any{"ports": ports}
		set(spec, "selector", c.selector)
		r.addOwned(gvkService, r.in.Namespace, c.Service, map[string]any{"spec": spec})
		return nil
	}
	// Some bundles bring the Service themselves: it keeps its other ports.
	spec := child(r.out[i].Body, "spec")
	for _, have := range list(spec, "ports") {
		if m, ok := have.(map[string]any); ok && !slices.ContainsFunc(
			c.ports, func(p port) bool { return m["port"] == int64(p.number) }) {
			ports = append(ports, m)
		}
	}
	delete(spec, "selector")
	set(spec, "selector", c.selector)
	spec["ports"] = ports
	return nil
}

// addOwned adds an object with the labels of what goes with the ClusterServiceVersion.
func (r *renderer) addOwned(gvk schema.GroupVersionKind, namespace, name string, body map[string]any) {
	set(child(body, "metadata"), "labels", r.ownerLabels())
	r.add(gvk, namespace, name, body)
}

// bind binds a role to an account of the operator's namespace.
func (r *renderer) bind(gvk schema.GroupVersionKind, namespace, name, roleKind, role, account string) {
	r.addOwned(gvk, namespace, name, map[string]any{
		"roleRef":  map[string]any{"apiGroup": gvk.Group, "kind": roleKind, "name": role},
		"subjects": []any{map[string]any{"kind": gvkServiceAccount.Kind, "name": account, "namespace": r.in.Namespace}},
	})
}

// mount gives the pods of a Deployment that is called its certificate, where API servers and where webhook
// servers look for it. A volume of the same name, and a mount at the same place, give way.
func (r *renderer) mount(deployment string, pod map[string]any) {
	for _, c := range r.called {
		if c.Deployment != deployment {
			continue
		}
		mergeByName(pod, "volumes", []any{
			certVolume(volumeAPIServer, c.Secret, "apiserver.crt", "apiserver.key"),
			certVolume(volumeWebhook, c.Secret, "tls.crt", "tls.key"),
		})
		for _, v := range list(pod, "containers") {
			if container, ok := v.(map[string]any); ok {
				mountAt(container, volumeAPIServer, mountAPIServer)
				mountAt(container, volumeWebhook, mountWebhook)
			}
		}
	}
}

func certVolume(name, secret, crt, key string) map[string]any {
	return map[string]any{"name": name, "secret": map[string]any{"secretName": secret, "items": []any{
		map[string]any{"key": "tls.crt", "path": crt}, map[string]any{"key": "tls.key", "path": key},
	}}}
}

func mountAt(container map[string]any, volume, path string) {
	mounts := list(container, "volumeMounts")
	mounts = slices.DeleteFunc(mounts, func(m any) bool {
		mount, ok := m.(map[string]any)
		return ok && (mount["name"] == volume || mount["mountPath"] == path)
	})
	container["volumeMounts"] = append(mounts, map[string]any{"name": volume, "mountPath": path})
}
