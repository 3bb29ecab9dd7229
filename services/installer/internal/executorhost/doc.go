// Package executorhost runs one executor for each registered cluster whose kubeconfig the hub holds.
//
// It reconciles the executors that run with the clusters that are registered: it starts an executor for a new
// cluster, stops the one of a removed cluster, and restarts one whose kubeconfig was replaced. A kubeconfig that
// cannot be decrypted or used is reported like any other problem of a cluster, so that it shows in the same
// place, and is tried again. The executor's lease in the cluster decides which of several hosts may write there.
//
// This is the only package that decrypts kubeconfigs. Nothing in one may run a program or read a file here:
// permission to register a cluster must not give access to the hub.
package executorhost
