// Package sharedobject decides which content an object gets that several operators install under one name: ClusterRoles
// such as metrics-reader, as scaffolding tools name them, and objects that operators of one namespace have in common.
// It is pure.
//
// Equal objects have several owners and are deleted with the last. Of different ones only one content can be in the
// cluster: that of the holder, whom a person chooses (DESIGN §1 Shared objects). The object has two annotations for
// each owner: that it installed the object, and the digest of the content that it wants. The owner labels name the
// holder.
package sharedobject
