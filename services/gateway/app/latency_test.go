package app_test

import (
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"
)

//go:embed testdata/fleet.sql
var fleet string

// BenchmarkReads measures list and get with 1,000 clusters of 30 operators in the read models, through
// HTTP, one request at a time: p99 is to stay within 20 ms (DESIGN §7).
func BenchmarkReads(b *testing.B) {
	g := setup(b)
	g.app.Opened(b.Context())
	g.exec("admin", "set search_path = "+g.text(`select string_agg(place, ', ') from eventlog.models`)+"; "+fleet+
		"; reset search_path")
	g.exec("admin", "analyze")
	const scope = "/api/v1/clusters/spoke-0500/namespaces/ops-15"
	for _, r := range []struct{ name, path string }{
		{"ListClusters", "/api/v1/clusters"},
		{"GetCluster", "/api/v1/clusters/spoke-0500"},
		{"ListSubscriptions", "/api/v1/subscriptions"},
		{"ListSubscriptionsOfCluster", "/api/v1/subscriptions?cluster=spoke-0500"},
		{"ListSubscriptionsOfPackage", "/api/v1/subscriptions?package=operator-7"},
		{"ListSubscriptionsByState", "/api/v1/subscriptions?state=UpgradePending"},
		{"GetSubscription", scope + "/subscriptions/operator-15"},
		{"ListOperators", "/api/v1/operators"},
		{"ListOperatorsByPhase", "/api/v1/operators?phase=Failed"},
		{"GetOperator", scope + "/operators/operator-15.v1.0.0"},
		{"Summary", "/api/v1/summary"},
		{"SummaryByNamespace", "/api/v1/summary?by=namespace"},
		{"SummaryByPackage", "/api/v1/summary?by=package"},
		{"SummaryByCatalog", "/api/v1/summary?by=catalog"},
		{"ListInstallPlans", "/api/v1/installplans"},
		{"ListInstallPlansByPhase", "/api/v1/installplans?phase=RequiresApproval"},
		{"GetInstallPlan", "/api/v1/installplans/00000000-0000-0000-0000-000000050015"},
	} {
		b.Run(r.name, func(b *testing.B) {
			took := make([]time.Duration, 0, b.N)
			for b.Loop() {
				begin := time.Now()
				if a := g.do("GET", r.path, nil); a.status != 200 {
					b.Fatalf("%d %s", a.status, a.body)
				}
				took = append(took, time.Since(begin))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms-p99")
		})
	}
}

// BenchmarkReadYourWrite measures a write and the read that waits for it, through HTTP.
func BenchmarkReadYourWrite(b *testing.B) {
	g := setup(b)
	g.cluster("spoke")
	var writes, reads []time.Duration
	n := 0
	for b.Loop() {
		name := fmt.Sprintf("s-%d", n)
		n++
		begin := time.Now()
		a := g.do("POST", subscriptions, subscribe(name, "tidegauge"))
		written := time.Now()
		if a.status != http.StatusCreated {
			b.Fatalf("%d %s", a.status, a.body)
		}
		if a := g.do("GET", subscriptions+"/"+name+"?minPosition="+a.header.Get("Chandler-Position"),
			nil); a.status != http.StatusOK {
			b.Fatalf("%d %s", a.status, a.body)
		}
		writes, reads = append(writes, written.Sub(begin)), append(reads, time.Since(written))
	}
	slices.Sort(writes)
	slices.Sort(reads)
	b.ReportMetric(float64(writes[len(writes)*99/100].Microseconds())/1000, "ms-write-p99")
	b.ReportMetric(float64(writes[len(writes)/2].Microseconds())/1000, "ms-write-p50")
	b.ReportMetric(float64(reads[len(reads)*99/100].Microseconds())/1000, "ms-read-p99")
}
