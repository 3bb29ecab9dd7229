package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// channel is the one that every package has.
const channel = "stable"

// packageName names the operator of a number.
func packageName(n int) string { return fmt.Sprintf("operator-%02d", n) }

// writeCatalog writes a directory with this many packages, each with its version 1.0.0. Files of a package are found
// by their place, as in a catalog that a person keeps in git.
func writeCatalog(dir string, packages int) error {
	for n := range packages {
		if err := release(dir, packageName(n), "1.0.0"); err != nil {
			return err
		}
	}
	return nil
}

// release adds a version to a package: the last one is the head of its channel.
func release(dir, pkg string, versions ...string) error {
	var entries strings.Builder
	before := ""
	for _, v := range versions {
		fmt.Fprintf(&entries, "  - {name: %s.v%s", pkg, v)
		if before != "" {
			fmt.Fprintf(&entries, ", replaces: %s.v%s", pkg, before)
		}
		entries.WriteString("}\n")
		if err := writeBundle(filepath.Join(dir, pkg, v), pkg, v, before); err != nil {
			return err
		}
		before = v
	}
	catalog := fmt.Sprintf("schema: olm.package\nname: %[1]s\ndefaultChannel: %[2]s\n---\nschema: olm.channel\n"+
		"package: %[1]s\nname: %[2]s\nentries:\n%[3]s", pkg, channel, entries.String())
	return os.WriteFile(filepath.Join(dir, pkg, "catalog.yaml"), []byte(catalog), 0o600)
}

func writeBundle(dir, pkg, version, replaces string) error {
	group := pkg + ".sim.test"
	if replaces != "" {
		replaces = "\n  replaces: " + pkg + ".v" + replaces
	}
	files := map[string]string{
		"metadata/annotations.yaml":  fmt.Sprintf(annotations, pkg, channel),
		"manifests/csv.yaml":         fmt.Sprintf(csv, pkg, version, group, replaces),
		"manifests/gauges.crd.yaml":  fmt.Sprintf(crd, group),
		"manifests/settings.cm.yaml": fmt.Sprintf(settings, pkg, version),
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

const annotations = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: %[1]s
  operators.operatorframework.io.bundle.channels.v1: %[2]s
  operators.operatorframework.io.bundle.channel.default.v1: %[2]s
`

const csv = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: %[1]s.v%[2]s}
spec:
  displayName: %[1]s
  version: %[2]s%[4]s
  installModes:
  - {type: OwnNamespace, supported: true}
  - {type: SingleNamespace, supported: true}
  - {type: MultiNamespace, supported: false}
  - {type: AllNamespaces, supported: false}
  customresourcedefinitions:
    owned: [{name: gauges.%[3]s, version: v1, kind: Gauge}]
  install:
    strategy: deployment
    spec:
      permissions:
      - {serviceAccountName: %[1]s, rules: [{apiGroups: [""], resources: [configmaps], verbs: [get, list]}]}
      clusterPermissions:
      - {serviceAccountName: %[1]s, rules: [{apiGroups: [""], resources: [nodes], verbs: [get]}]}
      deployments:
      - name: %[1]s
        spec:
          replicas: 1
          selector: {matchLabels: {app: %[1]s}}
          template:
            metadata: {labels: {app: %[1]s}}
            spec:
              serviceAccountName: %[1]s
              containers: [{name: manager, image: "registry.example.com/%[1]s:%[2]s"}]
`

const crd = `apiVersion: apiextensions.k8s.io/v1
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

const settings = `apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s-settings}
data: {version: "%[2]s"}
`
