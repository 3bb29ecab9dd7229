// Package eventlog is the record: it appends events, gives them positions and reads them (DESIGN D1).
//
// What is authoritative: the table eventlog.events, and before an event has a position
// eventlog.appended. A caller appends inside the transaction that decides; the head row of the stream
// is compared and set there, so two deciders cannot both win. Nothing is ordered at that moment: a
// position drawn before commit is a position that a reader may have passed when it becomes visible.
// After commit one Sequencer, the leader among the candidates that every service hosts, moves rows to
// eventlog.events and gives them dense positions and a time that never goes back. Each move is one
// statement, and its lock is never held while a program of ours does something else, so that a leader
// that is stopped in the middle blocks nobody; a leader whose term has passed is refused.
//
// Reading: a stream by version (also what has no position yet), everything after a position, nothing
// else: every search is a projection. A type that this program does not know is an
// *events.UnknownTypeError at that position and never skipped.
//
// A Position is (epoch, n). n counts densely through all epochs; the epoch is raised when somebody has
// seen a position that the record no longer holds (failover, restored backup): see CheckEpoch.
package eventlog
