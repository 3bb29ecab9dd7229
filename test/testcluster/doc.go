// Package testcluster starts real Kubernetes control planes on this machine, without containers: kube-apiserver,
// kube-controller-manager and kube-scheduler over etcd, and kwok in the place of the kubelets. What a test or the demo
// sees is Kubernetes itself, except that no image is ever pulled or run: kwok makes every scheduled pod Ready, and
// every pod of a job Succeeded.
//
// # What a test takes
//
// [New] gives a cluster of its own to a test that needs several clusters, or one with options. [Borrow] gives one to a
// test that installs CRDs or counts objects: it may be one that another test of the process gave back. [Shared] gives a
// fresh namespace on one cluster that all tests of the process share; it takes milliseconds after the first, and
// forbids what would reach other tests: writing CRDs. [Start] is below these and is for programs.
//
// # How it stays cheap
//
// The programs are built once from their Go modules and kept (package binaries). Clusters of one process share one etcd
// under different prefixes. A cluster that was borrowed is put back to its start in etcd, below the API server, and
// lent again, which takes a second or two, most of it waiting. Only a few tests of the whole machine hold clusters at a
// time ([MaxHolders]).
//
// # How it stays clean
//
// Every process that is started here dies with the process that started it, by a death signal of the kernel. What that
// leaves behind, the next start on the machine removes (package pool). Stop kills instead of asking for an orderly end:
// nothing in a test cluster is worth keeping.
package testcluster
