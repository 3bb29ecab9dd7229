// Package cel compiles and evaluates the rules of olm.constraint (R-RES-26): expressions of the Common
// Expression Language that are true or false of one bundle. A rule sees one variable, properties, the list
// of the bundle's {type, value}, and one function beside those of the language, semver_compare(a, b). It is
// written by the authors of catalogs, so that everything about it is bounded by counts: its length and depth,
// the properties it looks at, and the work of one evaluation. What the bounds are depends on nothing but the
// rule and the bundle, so that the same rule gives the same answer on every machine.
//
// Nothing is set up before the first rule is compiled: most catalogs have none.
package cel
