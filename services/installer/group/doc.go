// Package group says what an operator group comes to in its cluster (R-OG): which namespaces it serves, which APIs its
// members provide there and may go on to provide, which roles users get for them, and which rights of its members
// are carried into its targets.
//
// It is pure. Groups, namespaces with their labels and members come in as they are; the objects that are to be there
// come out, for the executor to keep.
package group
