// Package pglocal runs private PostgreSQL instances from the system's binaries, without root's rights
// and without a port: they listen on a unix socket in a directory that only their user can enter, so
// that no password is needed.
//
// Start is for "chandler dev", the demo and tests that stop the database: one instance that belongs to this process and
// ends with it, even if it is killed. Shared is for all other tests: one instance per machine and user, with durability
// switched off and in memory where there is room, that a small shell script ends when the last process that uses it has
// gone. Run as root, both use the account "postgres", since PostgreSQL refuses root.
package pglocal
