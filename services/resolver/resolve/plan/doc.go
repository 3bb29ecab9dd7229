// Package plan turns the solution of a partition into what can be carried out: it splits it into parts that need
// nothing of each other, orders the bundles of each, and says why each of them is there.
package plan
