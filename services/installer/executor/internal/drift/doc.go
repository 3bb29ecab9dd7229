// Package drift tells how an object of the cluster differs from what Chandler wrote, and how often the same is to be put
// right. It is pure: objects and time come in as data.
package drift
