// Package record decides which facts a report adds to the log. It is pure: what was recorded before, the
// report and the time in it come in as data, events and the new state go out.
//
// Reports are level-triggered and may be lost, come twice or late; each holds whole histories. So the
// rule is: take from a history what lies behind the part that is recorded, and append what changes
// something. Taking the same report again adds nothing, and a report that was lost hides nothing.
//
// Facts are rate-bounded per component (DESIGN D2): a ClusterServiceVersion that changes too often is one
// csv.flapping until it is calm again, and then the phase in which it came to rest.
package record
