// Package mirror builds the objects of OLM's kinds that show people and tools in a cluster what Chandler installed
// there, and decides which of them there are to be (cluster setting mirror: none, csv, all).
//
// A mirror is read, never obeyed: what counts is the InstalledOperator and what the hub says. Deleting a mirror
// uninstalls nothing, it comes back; other edits are refused by an admission policy with a sentence that says where
// to make them (Policy). Two kinds are not mirrors: an OperatorCondition is written by the operator and by
// administrators and is made whatever the setting says (R-COND-1, R-COND-2), and OLMConfig belongs to the
// administrator, who switches copies of ClusterServiceVersions on there (R-CFG-1).
//
// The package is pure: the executor reads, compares and writes.
package mirror
