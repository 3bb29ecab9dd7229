// Package configmap reads a catalog from a config map of a cluster: the form of the first catalogs,
// whose keys are lists in YAML (R-CAT-84).
//
//	customResourceDefinitions   CRDs, each given to the CSVs that own it
//	clusterServiceVersions      CSVs
//	packages                    {packageName, channels: [{name, currentCSV}], defaultChannel}
//
// A channel holds its current CSV, all that this one replaces, step by step, and what those skip, as far
// as there are CSVs. Manifests become olm.bundle.object, since nothing else holds them.
package configmap
