// Package planreview says what somebody should see before they approve an install plan: every object as it will be
// applied, what the operator will be allowed to do, and what differs from what is installed. It is pure.
//
// Everything is made of the same bytes that the plan's digest binds: bundles are rendered again by the rules that the
// plan names, and each object is compared with the digest of its step before it is shown (ADR 0056).
package planreview
