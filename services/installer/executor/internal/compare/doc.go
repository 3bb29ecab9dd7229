// Package compare says how an object of the cluster differs from what Chandler wrote. It is pure.
package compare
