// Package preflight asks a cluster what stands in the way of a plan, before its first step: rights that the account
// lacks under which it runs (R-IP-41, R-OG-60), and definitions whose change would hurt what the cluster holds (R-CRD).
// It reads as Chandler itself and writes nothing. The rules are in packages rights and crd.
package preflight
