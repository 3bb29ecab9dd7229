// Package gate says what a gate of a rollout may ask, and reads what it was told: its settings, its expressions, and
// the verdict on what was observed. It is pure; who asks addresses is a service.
//
// An expression is CEL. What it may name depends on the type of the gate:
//
//	CEL         clusters, of the wave: each with name, labels, state, reason, csv, version, phase, upgradeable,
//	            kubernetes, away; the counts total, succeeded, failed, unreachable, skipped
//	HTTP        status, and body, which is the JSON of the answer
//	Prometheus  samples, each with labels and value; value, where there is one sample alone
package gate
