package protocol

import (
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/digest"
)

// namespaceScope is the UUIDv5 namespace of scope ids. It is arbitrary and must never change.
var namespaceScope = uuid.MustParse("3f0a7d52-8f0e-5b53-9a51-6d1c4be0a733")

// installationDigits is how much of an installation's id stands in the names of its streams: enough to tell apart those
// that may ever meet on one server; the whole id is in the stream's metadata.
const installationDigits = 8

// StreamName is the name of an installation's stream of a kind, such as CHANDLER_1a2b3c4d_PLANS.
func StreamName(installation, kind string) string {
	short := strings.ReplaceAll(installation, "-", "")
	return "CHANDLER_" + short[:min(len(short), installationDigits)] + "_" + kind
}

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

// ReportsFilter matches the subjects of all reports of a cluster.
func ReportsFilter(tenant, clusterID string) string {
	return join(SubjectReport, tenant, clusterID, "*")
}

// ReporterOf is the tenant and the cluster that the subject of a report names; ok is false for any other subject.
func ReporterOf(subject string) (tenant, clusterID string, ok bool) {
	rest, ok := strings.CutPrefix(subject, SubjectReport+".")
	tokens := strings.Split(rest, ".")
	if !ok || len(tokens) != reportTokens {
		return "", "", false
	}
	return tokens[0], tokens[1], true
}

// reportTokens are the tenant, the cluster, and the scope or ClusterToken.
const reportTokens = 3

// ContentSubject is where chunk number n (from 0) of a pack lies.
func ContentSubject(tenant string, d digest.Digest, n int) string {
	return join(SubjectChunks, tenant, d.Hex(), strconv.Itoa(n))
}

func join(tokens ...string) string { return strings.Join(tokens, ".") }
