// Package projection keeps read models, tables that are a fold over the log (DESIGN D9), and rebuilds tables of
// consumers beside those who work by them (ADR 0040).
//
// The fold of a batch and the checkpoint behind it commit in one transaction (libs/bus.Consumer), so a
// crash anywhere continues without gap or double count. A read model is disposable: Rebuild folds
// the log from its beginning into tables beside the live ones and puts their contents in place in one
// transaction; readers see the old contents or the new, never a mixture. The tables beside are
// temporary ones of one session: nobody else sees them, and a crash leaves nothing behind.
//
// Resolver, hub and catalog-indexer have tables that are folds beside others that are not, and handlers that name them.
// A Making says what is what, and a Rebuilder does what administrators ask for (eventlog.rebuilds): the same handlers
// run in a transaction that leads the names to the tables beside.
//
// A fold that changes its meaning, or the shape of its tables, gets another Version. Each version has tables in a
// schema of its own and a checkpoint of its own, so that processes of two releases fold and read beside each other
// (ADR 0043); a Sweeper drops what none has used for long. An event that Apply cannot take parks its stream, as in
// every consumer. Apply must use nothing but the event and the tables it is given: no clock, no network, no other
// tables; otherwise a rebuild would differ.
package projection
