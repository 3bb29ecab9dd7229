// Package stack runs the whole of Chandler on this machine: a private Postgres, nats-server, and the four services as
// separate processes. The demo keeps one for a person to look at; the end-to-end and fault tests start one, kill and
// pause its parts, and start them again.
//
// Everything listens on loopback. Every process dies with the one that started it.
package stack
