package protocol

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// namespaceScope is the UUIDv5 namespace of scope ids. It is arbitrary and must never change.
var namespaceScope = uuid.MustParse("3f0a7d52-8f0e-5b53-9a51-6d1c4be0a733")

// ClusterToken takes the place of a scope in the subject of a cluster's own report.
const ClusterToken = "cluster"

// ScopeID is the id of a namespace of a cluster, the last token of its subjects.
func ScopeID(clusterID, namespace string) string {
	return uuid.NewSHA1(namespaceScope, []byte(clusterID+"\x00"+namespace)).String()
}

// PlansSubject is where the hub writes what is wanted of a scope.
func PlansSubject(s Scope) string {
	return join(SubjectPlans, s.Tenant, s.ClusterID, ScopeID(s.ClusterID, s.Namespace))
}

// PlansFilter matches the subjects of all scopes of a cluster.
func PlansFilter(tenant, clusterID string) string { return join(SubjectPlans, tenant, clusterID, "*") }

// ScopeReportSubject is where an executor writes what it knows of a scope.
func ScopeReportSubject(s Scope) string {
	return join(SubjectReport, s.Tenant, s.ClusterID, ScopeID(s.ClusterID, s.Namespace))
}

// ClusterReportSubject is where an executor writes what it knows of its cluster.
func ClusterReportSubject(tenant, clusterID string) string {
	return join(SubjectReport, tenant, clusterID, ClusterToken)
}

// ContentSubject is where chunk number n (from 0) of a pack lies.
func ContentSubject(tenant string, d digest.Digest, n int) string {
	return join(SubjectChunks, tenant, d.Hex(), strconv.Itoa(n))
}

func join(tokens ...string) string { return strings.Join(tokens, ".") }
