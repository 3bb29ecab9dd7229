// Package bus carries hints of new events between services and distributes work (DESIGN D4).
//
// The log in Postgres (libs/eventlog) is the authority. A JetStream message is a hint, "there are events up
// to this position": it may be lost, come twice or late, or its stream may be deleted, and that costs only
// time:
//
//   - A Consumer is a checkpoint plus a read of the log after it. Its effect and its checkpoint commit
//     in one transaction. Hints, and Postgres' own notification, only wake it; it also polls.
//   - A Publisher is run by the leading sequencer. It publishes hints in the log's order, each naming
//     its predecessor by Nats-Expected-Last-Msg-Id, so that a publisher that lost the lead without
//     knowing it is refused. It notices a missing, emptied, foreign or lagging stream and fills it again.
//   - Lanes are dirty scopes in a table: marked in the transaction that makes them dirty, claimed by a
//     short row update, worked on with no transaction open.
//   - Serve and Call carry requests and replies that change nothing.
//
// # What happens when something fails
//
//	handler, transient (Postgres away, deadlock)  the batch is rolled back and tried again, with back-off
//	handler, anything else                        the event's stream is parked at this version; the
//	                                              stream's later events wait behind it, others go on;
//	                                              tried again with back-off and by hand (RetryParked)
//	event type unknown to this binary             the consumer stops at that position, shows it
//	                                              (Status, readiness, gauge) and tries again later
//	NATS away                                     consumers read Postgres alone; hints follow later
//	a worker dies with a claimed scope            the claim expires and another takes it
//
// It must not hold state that cannot be rebuilt from the log, and no message may be the only source of
// any information.
package bus
