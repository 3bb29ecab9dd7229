// Package shared decides whose form an object has that several operators bring under one name: ClusterRoles such as
// metrics-reader, as scaffolding tools name them, and what operators of one namespace have in common. It is pure.
//
// Equal objects have several owners and go with the last. Of different ones one form holds, that of the elected owner, and
// a person says which (DESIGN §1 Shared objects). In the object, each owner has an annotation that it brought it and one
// with the digest of the form that it wants; the labels of the owner name the one whose form it has.
package shared
