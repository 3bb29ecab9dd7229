// Package explain turns the failures of a search into statements and sentences that a person can act on (R-RES-43):
// which subscriptions fail, what they require, what excludes it, and what there is instead.
package explain
