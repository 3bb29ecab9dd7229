// Package uninstall looks at what a cluster holds of an operator, for the rules of package removal, and empties
// definitions of their objects. It reads metadata where that is enough: Secrets and schemas can be large.
package uninstall
