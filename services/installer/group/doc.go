// Package group decides what an operator group means in its cluster (R-OG): which namespaces it serves, which APIs its
// operators may provide there, which roles users get for these APIs, and which roles of its operators are copied to its
// target namespaces.
//
// It is pure. Groups, namespaces with their labels, and operators come in as data; the objects that should exist go
// out, and the executor writes them.
package group
