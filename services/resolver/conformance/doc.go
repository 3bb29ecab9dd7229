// Package conformance runs resolutions that are written down as cases: what is in a namespace, what its catalogs
// hold, and what OLM Classic does with it. docs/conformance.md has the form of a case.
//
// Decode reads a case, Content makes a catalog of its documents ready, Case.Input puts both before
// resolve.Resolve, and Judge compares what comes of it with what OLM did. Where Chandler means to differ from
// OLM a rule of meant.go says so, by what is in the case and never by its name, and asserts what came instead.
//
// Everything here is pure: files are read by who calls.
package conformance
