// Package mirror builds the objects of OLM's kinds that show people and tools in a cluster what Chandler installed
// there, and decides which of them should exist (cluster setting mirror: none, csv, all).
//
// A mirror is read-only: the InstalledOperator and the hub decide. A deleted mirror is written again, and nothing is
// uninstalled; other edits are refused by an admission policy, with a message that names where to make them (Policy).
// Two kinds are not mirrors. An OperatorCondition is written by the operator and by administrators, and exists whatever
// the setting is (R-COND-1, R-COND-2). OLMConfig belongs to the administrator, who enables copies of
// ClusterServiceVersions there (R-CFG-1).
//
// The package is pure: the executor reads, compares and writes.
package mirror
