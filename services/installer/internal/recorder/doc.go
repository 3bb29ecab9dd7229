// Package recorder turns what executors report into facts in the log.
//
// A report is the whole of what is known of one scope; package record decides what it adds. The facts
// and the recorder's own state (how much of each history is in the log) commit in one transaction, so
// that a crash anywhere, a report that comes twice, and two recorders at once add nothing twice and
// leave nothing out. Reports of a holder that was replaced, and older ones of the same holder, are refused.
//
// A recorder records the reports of the clusters that it has claimed (Place). Each transaction checks the claim, so
// that of two recorders that disagree the last one to claim writes.
//
// Reports come as messages when something changes. Every so often the report of a cluster comes, with a digest over the
// newest reports of its namespaces; the same is kept of what is recorded. Where they differ, the last values of REPORTS
// are read, and the executor is asked to write what is not there (compare.go), so that a lost message costs only time.
package recorder
