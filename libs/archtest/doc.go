// Package archtest proves the shape of the repository: who may import whom, what pure packages must
// not touch, how large files may become, and how many dependencies each module and binary may have.
//
// The rules are data (rules.go, budget.go); go list says how things are. A wrong import fails here
// in seconds. To allow a new one, change the table, and say in the change why.
package archtest
