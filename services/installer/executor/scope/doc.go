// Package scope holds what one reconcile has read of one namespace, and the questions that every stage asks of it.
// Stages pass a Scope on to each other instead of calling each other: what a stage has found out, the later ones read
// there.
package scope
