// Package drift tells how an object of the cluster differs from what Chandler wrote. It is pure: both come in as data.
package drift
