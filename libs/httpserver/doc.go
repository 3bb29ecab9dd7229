// Package httpserver is the HTTP side that services share: a chi router with the standard
// middleware, the one table from error kinds to status, problem documents (RFC 9457), health,
// readiness and metrics, and a server that drains.
package httpserver
