// Package validate holds the rules of packages, channels and bundles of a catalog (R-CAT-20 …). It checks drafts: what
// the files of a catalog state, with the place of every value, before it is a catalog.Package. Package load makes the
// drafts and decides when which rules are asked. It is pure.
package validate
