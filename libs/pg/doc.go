// Package pg opens pools of PostgreSQL connections, runs transactions and turns the driver's errors
// into the kinds of libs/errs.
//
// It is the one place where SQLSTATE codes are read. Transactions are READ COMMITTED: every rule that
// needs more is kept by a row lock or a compare-and-set in SQL (libs/eventlog). Row-level security
// asks the setting chandler.tenant (TenantTx, Confine); roles of services that work for all tenants carry "*".
// Callers: every service, libs/eventlog, libs/bus, libs/projection. It knows no table.
package pg
