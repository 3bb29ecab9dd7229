// Package provenance tells what the hub granted of an installed operator from what its object in the cluster says. The
// object lies in a namespace of others, and Chandler acts on it with all rights of the cluster: an admission policy
// keeps others from writing it, and nothing rests on that alone.
package provenance
