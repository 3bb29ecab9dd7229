// Package host runs one executor for each registered cluster whose kubeconfig the hub holds.
//
// It compares what should run with what runs: a cluster that was registered is started, one that was
// removed is stopped, one whose kubeconfig was replaced is started again with the new one. A kubeconfig
// that cannot be opened or used is reported like any other trouble with a cluster, so that it is
// visible in the same place, and is tried again. Which of several hosts may write into a cluster is
// decided in the cluster itself by the executor's lease.
//
// It is the only place that decrypts kubeconfigs. Nothing in one may run a program or read a file here:
// whoever may register a cluster must not thereby act as the hub.
package host
