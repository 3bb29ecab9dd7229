// Package scope holds one namespace in one reconcile, and the questions that every stage asks of it. Stages pass a
// Scope on to each other instead of calling each other: what a stage has found out, the later ones read there.
//
//	Snapshot  what was read: what the hub wants, the step logs, the operators, their Deployments
//	Found     what stages have found out; each field has one package that writes it
//	Env       clients, clock, log and what a session remembers: the same in all reconciles
//	Attempts  what failed alone, and when the namespace is reconciled again
//
// What was read is replaced as a whole by a new reading (Scope.Load, Scope.ReadDeployments, package steplog) and edited
// by nobody in between. Two things follow what Chandler itself writes, since to read them again would cost a request
// each: the object and the status of an Operator become what the API server answered to the write of them
// (Operator.Take, package objects), and the steps of an Execution are noted in memory by whoever takes them, since one
// save of the log says so of a whole batch. TestWriters holds the rest.
package scope
