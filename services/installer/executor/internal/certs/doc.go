// Package certs keeps the serving certificates of operators in Secrets of their cluster, and puts their CA where the
// API server and the pods look for it (R-CSV-40, R-CSV-43). The rules are in package serving.
package certs
