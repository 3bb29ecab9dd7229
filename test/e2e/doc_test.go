// Package e2e proves what the parts do together: four service processes over real Postgres, NATS and Kubernetes API
// servers, driven as a portal would, and harmed in every way that a machine can harm them.
package e2e
