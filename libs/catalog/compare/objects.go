package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// quietKinds are kinds that a bundle may bring (R-CAT-53) and that ask nothing of the cluster by what they hold. Roles
// and bindings are read as grants, definitions as definitions.
var quietKinds = words(`ConfigMap PodDisruptionBudget PrometheusRule VerticalPodAutoscaler ConsoleCLIDownload
	ConsoleLink ConsoleQuickStart ConsoleYAMLSample Role RoleBinding ClusterRole ClusterRoleBinding
	CustomResourceDefinition ClusterServiceVersion`)

// podKinds hold a pod template at spec.template. No bundle may bring one: the pods of an operator are in its CSV.
var podKinds = words("Deployment DaemonSet StatefulSet ReplicaSet ReplicationController Job")

// quietSpec are fields of a CSV's spec that are read here or only shown.
var quietSpec = words(`version release replaces skips displayName description maturity keywords provider links
	maintainers icon minKubeVersion installModes install customresourcedefinitions apiservicedefinitions nativeAPIs
	webhookdefinitions relatedImages labels selector annotations cleanup`)

// asks reads the demands of all objects of a bundle. r knows what the bundle brings.
func asks(r podReader, csv *bundle.CSV, objects []bundle.Object) error {
	if csv != nil {
		if err := csvAsks(r, *csv); err != nil {
			return err
		}
	}
	for _, o := range objects {
		r.object = o.String()
		var m fields
		if err := manifest(o, (*map[string]any)(&m)); err != nil {
			return err
		}
		objectAsks(r, o, m)
	}
	return nil
}

func csvAsks(r podReader, csv bundle.CSV) error {
	var m fields
	if err := decode(csv.Raw, (*map[string]any)(&m)); err != nil {
		return err
	}
	r.object = bundle.KindCSV
	for f := range m.object("spec") {
		if !quietSpec[f] {
			r.say(Unknown, "field spec.%s", f)
		}
	}
	quiet := words("deployments permissions clusterPermissions")
	for f := range m.object("spec").object("install").object("spec") {
		if !quiet[f] {
			r.say(Unknown, "field spec.install.spec.%s", f)
		}
	}
	for _, i := range csv.Spec.RelatedImages {
		r.image(i.Image)
	}
	for _, d := range csv.Spec.Install.Spec.Deployments {
		var spec fields
		if err := decode(d.Spec, (*map[string]any)(&spec)); err != nil {
			return err
		}
		r.object = "Deployment " + d.Name
		r.template(spec.object("template"), csv.Annotations)
	}
	return callerAsks(r, csv)
}

// objectAsks reads what an object of its own asks for.
func objectAsks(r podReader, o bundle.Object, m fields) {
	spec := m.object("spec")
	switch o.Kind {
	case "Secret":
		if t := m.text("type"); t == "kubernetes.io/service-account-token" {
			r.say(MountsToken, "of %s",
				m.object("metadata").object("annotations").text("kubernetes.io/service-account.name"))
		}
	case "ServiceAccount":
		accountAsks(r, m)
	case "Service":
		serviceAsks(r, spec)
	case "NetworkPolicy":
		if pods := spec.object("podSelector"); len(pods) == 0 {
			r.say(NetworkOfOthers, "all pods of the namespace: %s", compact(m["spec"]))
		}
	case "ServiceMonitor":
		monitorAsks(r, spec)
	case "PriorityClass":
		r.say(Priority, "value %s, default for all: %v", compact(m["value"]), m.is("globalDefault", true))
	case "ConsolePlugin":
		r.say(RunsInConsole, "%s", compact(m["spec"]))
	case "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		for _, h := range m.list("webhooks") {
			webhookAsks(r, h)
		}
	case "APIService":
		r.say(APIService, "%s/%s", spec.text("group"), spec.text("version"))
	case "Pod":
		r.template(m, nil)
	case "CronJob":
		r.template(spec.object("jobTemplate").object("spec").object("template"), nil)
	default:
		switch {
		case podKinds[o.Kind]:
			r.template(spec.object("template"), nil)
		case !quietKinds[o.Kind]:
			r.say(Unknown, "kind %s of %s", o.Kind, o.APIVersion)
		}
	}
}

func accountAsks(r podReader, m fields) {
	for _, list := range []string{"secrets", "imagePullSecrets"} {
		for _, s := range m.list(list) {
			r.secret(s.text("name"), list)
		}
	}
	for _, a := range m.object("metadata").texts("annotations") {
		r.say(Identity, "%s", a)
	}
}

// monitorAsks reads which files whoever collects metrics is to read.
func monitorAsks(r podReader, spec fields) {
	for i, e := range spec.list("endpoints") {
		tls := e.object("tlsConfig")
		for _, f := range []string{
			e.text("bearerTokenFile"), tls.text("caFile"), tls.text("certFile"), tls.text("keyFile"),
		} {
			if f != "" {
				r.say(ReadsFiles, "endpoint %d: %s", i+1, f)
			}
		}
	}
}

func serviceAsks(r podReader, spec fields) {
	switch t := spec.text("type"); t {
	case "LoadBalancer", "NodePort":
		r.say(ExternalTraffic, "%s", t)
	case "ExternalName":
		r.say(ExternalTraffic, "%s %s", t, spec.text("externalName"))
	}
	for _, ip := range spec.texts("externalIPs") {
		r.say(ExternalTraffic, "address %s", ip)
	}
}

// callerAsks reads what the API server is to call.
func callerAsks(r podReader, csv bundle.CSV) error {
	for i, raw := range csv.Spec.Webhooks {
		var m fields
		if err := decode(raw, (*map[string]any)(&m)); err != nil {
			return err
		}
		name := m.text("generateName")
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		r.object = m.text("type") + " " + name
		if m.text("type") == bundle.ConversionWebhook {
			for _, crd := range m.texts("conversionCRDs") {
				r.say(ConversionWebhook, "%s", crd)
			}
			continue
		}
		webhookAsks(r, m)
	}
	for _, a := range csv.Spec.APIServices.Owned {
		r.object = fmt.Sprintf("APIService %s.%s", a.Version, a.Group)
		r.say(APIService, "%s", a.Kind)
	}
	return nil
}

// webhookAsks tells what a webhook is asked about, rule by rule, with what narrows it, and whom it keeps out where it
// fails: whatever of that changes is another demand.
func webhookAsks(r podReader, m fields) {
	about := []string{"failure policy " + cmp.Or(m.text("failurePolicy"), "Fail")}
	for _, selector := range []string{"objectSelector", "namespaceSelector", "matchConditions"} {
		if m.has(selector) {
			about = append(about, selector+" "+compact(m[selector]))
		}
	}
	if t := m["timeoutSeconds"]; t != nil {
		about = append(about, "timeout "+compact(t)+" s")
	}
	if p := m.text("matchPolicy"); p != "" && p != "Equivalent" {
		about = append(about, "match policy "+p)
	}
	if p := m.text("reinvocationPolicy"); p != "" && p != "Never" {
		about = append(about, "reinvocation "+p)
	}
	for _, rule := range m.list("rules") {
		groups, danger := rule.texts("apiGroups"), Webhook
		if slices.ContainsFunc(groups, bundle.Guarded) {
			danger = ReservedWebhook
		}
		r.say(danger, "%s of %q %s, scope %s, %s", strings.Join(rule.texts("operations"), " "), groups,
			strings.Join(rule.texts("resources"), " "), cmp.Or(rule.text("scope"), "*"), strings.Join(about, ", "))
	}
}
