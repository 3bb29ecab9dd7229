// Package record decides which facts a report adds to the log. It is pure: what was recorded before, the
// report and the time in it come in as data, events and the new state go out.
//
// Reports are level-triggered and may be lost, come twice or late; each holds whole histories. So the
// rule is: take the part of a history that is not recorded yet, and append what changes something.
// The same report again adds nothing, and a lost report hides nothing.
//
// Facts are rate-bounded per component (DESIGN D2): a ClusterServiceVersion that changes too often is one
// csv.flapping until the flapping ends, and then the phase that it has reached.
package record
