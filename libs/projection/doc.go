// Package projection keeps read models, tables that are a fold over the log (DESIGN D9), and rebuilds tables of
// consumers beside those who work by them (ADR 0040).
//
// The fold of a batch and the checkpoint behind it commit in one transaction (libs/bus.Consumer), so a
// crash anywhere continues without gap or double count. A read model is disposable: Rebuild folds
// the log from its beginning into tables beside the live ones and puts their contents in place in one
// transaction; readers see the old contents or the new, never a mixture. The tables beside are
// temporary ones of one session: nobody else sees them, no right to change the schema is needed, and a
// crash leaves nothing behind.
//
// Resolver, hub and catalog-indexer have tables that are folds beside others that are not, and handlers that name them.
// A Making says what is what, and a Rebuilder does what administrators ask for (eventlog.rebuilds): the same handlers
// run in a transaction that leads the names to the tables beside.
//
// A fold that changes its meaning gets another Version: at its first start it rebuilds, and a replica
// of an older version that still runs stops writing and says so. An event that Apply cannot take parks
// its stream, as in every consumer. Apply must use nothing but the event and the tables it is given: no
// clock, no network, no other tables; otherwise a rebuild would differ.
package projection
