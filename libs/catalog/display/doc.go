// Package display reads what people see of an operator before they install it: the tile of a package in
// a list (Card), and the details that the display part of a CSV holds (Metadata). The indexer makes
// search rows of it and the gateway answers, so that both mean the same by "provider" or "capability".
//
// What authors wrote here is text for people: a field of another form than documented is left out
// rather than refused, since it decides nothing. The package is pure.
package display
