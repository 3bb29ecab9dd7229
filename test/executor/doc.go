// Package executor tests the installer's executor against real API servers and a real NATS server,
// with the hub played by the test: it publishes plans and content, and reads reports.
package executor
