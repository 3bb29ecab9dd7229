// Package bundle holds the content of one registry+v1 bundle: one ClusterServiceVersion, the CRDs
// that it owns and optional objects (R-CAT-50..53).
//
// The unit that is stored, sent and named by digest is the canonical bundle: every manifest as
// RFC 8785 JSON, sorted by (apiVersion, kind, namespace, name), so that file names, file order,
// YAML or JSON, and key order do not matter. Numbers are doubles there, as RFC 8785 has it.
//
// Everything here is pure and meets hostile input with a named limit: manifests may come from
// anybody's catalog (DESIGN D10).
package bundle
