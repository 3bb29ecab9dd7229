package executor_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/bundle"
)

// operator describes a small bundle.
type operator struct {
	name, version string
	replaces      string
	group         string   // of its CRD gauges.<group>; none without
	requires      string   // name of a required CRD, version v1
	deployments   []string // default: <name>-controller
	minKube       string
	configMap     string // an optional object
	slip          bool   // fields that Kubernetes does not know
	webhook       string // the deployment that validates what is written of its CRD
	// the label of the nodes on which its pods run, where they need one; without, they give up soon
	berth string
}

func (o operator) csv() string { return o.name + ".v" + o.version }

func (o operator) content(tb testing.TB) bundle.Content {
	tb.Helper()
	raw := [][]byte{[]byte(o.manifest())}
	if o.group != "" {
		raw = append(raw, []byte(fmt.Sprintf(crdManifest, o.group)))
	}
	if o.configMap != "" {
		raw = append(raw, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+o.configMap+
			"}\ndata: {version: '"+o.version+"'}\n"))
	}
	c, err := bundle.FromManifests(raw)
	must(tb, err)
	return c
}

func (o operator) manifest() string {
	var b strings.Builder
	fmt.Fprintf(
		&b, "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: %s\nspec:\n",
		o.csv())
	fmt.Fprintf(&b, "  displayName: %s\n  version: %s\n", o.name, o.version)
	if o.replaces != "" {
		fmt.Fprintf(&b, "  replaces: %s\n", o.replaces)
	}
	if o.minKube != "" {
		fmt.Fprintf(&b, "  minKubeVersion: %s\n", o.minKube)
	}
	b.WriteString(modesManifest)
	if o.group != "" || o.requires != "" {
		b.WriteString("  customresourcedefinitions:\n")
	}
	if o.group != "" {
		fmt.Fprintf(&b, "    owned: [{name: gauges.%s, version: v1, kind: Gauge}]\n", o.group)
	}
	if o.requires != "" {
		fmt.Fprintf(&b, "    required: [{name: %s, version: v1, kind: Gauge}]\n", o.requires)
	}
	if o.webhook != "" {
		fmt.Fprintf(&b, webhookManifest, o.webhook, o.group)
	}
	fmt.Fprintf(&b, strategyManifest, o.name, o.name)
	deployments := o.deployments
	if len(deployments) == 0 {
		deployments = []string{o.name + "-controller"}
	}
	for _, d := range deployments {
		fmt.Fprintf(&b, deploymentManifest, d, d, d, o.name, o.version)
		if o.slip {
			b.WriteString("              restartPolcy: Always\n")
		}
		if o.berth != "" {
			fmt.Fprintf(&b, "              nodeSelector: {%s: ''}\n          progressDeadlineSeconds: 1\n", o.berth)
		}
	}
	return b.String()
}

const modesManifest = `  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: true}
  - {type: AllNamespaces, supported: true}
`

const webhookManifest = `  webhookdefinitions:
  - type: ValidatingAdmissionWebhook
    generateName: vgauge.%[2]s
    deploymentName: %[1]s
    targetPort: 9443
    failurePolicy: Fail
    sideEffects: None
    admissionReviewVersions: [v1]
    rules: [{apiGroups: [%[2]s], apiVersions: [v1], operations: [CREATE], resources: [gauges]}]
`

const strategyManifest = `  install:
    strategy: deployment
    spec:
      permissions:
      - serviceAccountName: %s
        rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]
      clusterPermissions:
      - serviceAccountName: %s
        rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]
      deployments:
`

const deploymentManifest = `      - name: %s
        spec:
          replicas: 1
          selector: {matchLabels: {app: %s}}
          template:
            metadata: {labels: {app: %s}}
            spec:
              serviceAccountName: %s
              containers: [{name: manager, image: 'registry.example.com/op:%s'}]
`

const crdManifest = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gauges.%[1]s}
spec:
  group: %[1]s
  scope: Namespaced
  names: {kind: Gauge, listKind: GaugeList, plural: gauges, singular: gauge}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`
