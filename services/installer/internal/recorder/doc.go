// Package recorder turns what executors report into facts in the log.
//
// A report is the whole of what is known of one scope; package record decides what it adds. The facts
// and the recorder's own state (how much of each history is in the log) commit in one transaction, so
// that a crash anywhere, a report that comes twice, and two recorders at once add nothing twice and
// leave nothing out. Reports of a holder that was replaced, and older ones of the same holder, are refused.
//
// Reports come as messages while they are written, and are read as the last values of REPORTS at the
// start and now and then, so that a lost message costs only time.
package recorder
