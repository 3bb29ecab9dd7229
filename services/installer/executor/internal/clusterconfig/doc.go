// Package clusterconfig knows what every operator of a cluster is given, whoever installed it: the proxy of the cluster
// (R-SUB-10, R-PRX-1) and the secrets with which images are pulled (R-IP-22, R-DIS-5).
package clusterconfig
