// Package rollout is the aggregate of one rollout: a change that reaches clusters wave by wave.
//
// Two write to its stream. The fleet controller of the resolver appends what Next decides, people append what Decide
// lets them. Both are pure: what clusters did, the time and ids come in as data.
//
//	phase         what leads there                    what leads away
//	Progressing   it starts, or Resume                Pause, a budget is exceeded, everything is shown, Abort, Rollback
//	Paused        Pause                               Resume, Abort, Rollback
//	Halted        a budget is exceeded                Resume, Abort, Rollback
//	Succeeded     every wave has passed, and nobody   Rollback
//	              has to catch up
//	Aborted       Abort                               Rollback
//	RolledBack    Rollback: the next rollout takes back what it brought
//
// A cluster is directed once for each attempt. The event that changes its subscription, and all that follows from
// it, carry the directive as their correlation id. Only a fact that carries the directive of the present attempt
// settles the cluster: that it was well before says nothing about this change.
//
// Whoever is killed between two events loses nothing: Next is asked again with the state that is recorded, and a
// cluster is directed in the transaction that writes its subscription.
package rollout
