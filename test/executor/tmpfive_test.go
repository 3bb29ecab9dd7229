package executor_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
	"context"

	"sigs.k8s.io/yaml"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chandler-fleet/chandler/libs/bundle"
	"github.com/chandler-fleet/chandler/libs/render"
)

func TestTmpFive(t *testing.T) {
	b := newBed(t)
	b.start(b.config("one"))
	names := map[string]string{}
	for _, pkg := range strings.Fields(os.Getenv("PKGS")) {
		text, err := os.ReadFile("/tmp/data/v4.14/" + pkg + "/catalog.yaml")
		must(t, err)
		want := os.Getenv("CSV")
		for _, doc := range strings.Split(string(text), "\n---\n") {
			j, err := yaml.YAMLToJSON([]byte(doc))
			must(t, err)
			var blob struct {
				Schema, Name string
				Properties   []struct {
					Type  string
					Value json.RawMessage
				}
			}
			must(t, json.Unmarshal(j, &blob))
			if blob.Schema != "olm.bundle" || want != "" && blob.Name != want {
				continue
			}
			var raw [][]byte
			for _, p := range blob.Properties {
				if p.Type == "olm.bundle.object" {
					var v struct{ Data []byte }
					must(t, json.Unmarshal(p.Value, &v))
					raw = append(raw, v.Data)
				}
			}
			c, err := bundle.FromManifests(raw)
			must(t, err)
			csv, err := c.CSV()
			must(t, err)
			t.Log(csv.Name, render.Unserved(csv))
			b.targets(pkg, csv)
			b.want(pkg, b.plan(pkg, pkg, planned{content: c}))
			names[pkg] = csv.Name
			break
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for ns, n := range names {
		for ctx.Err() == nil {
			r, _, _ := b.report(ctx, ns)
			if len(r.CSVs) > 0 && r.CSVs[0].Name == n && reached("Succeeded")(r.CSVs[0]) {
				t.Log(n, "SUCCEEDED")
				break
			}
			tick := time.NewTimer(200 * time.Millisecond)
			<-tick.C
		}
		r, _, _ := b.report(t.Context(), ns)
		t.Logf("%s: %+v %+v", n, r.Plans, r.CSVs)
		pods, _ := b.kube.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
		for _, p := range pods.Items {
			t.Log(p.Name, p.Status.Phase, p.Spec.NodeName, p.Status.Conditions)
		}
		ev, _ := b.kube.CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{})
		for _, e := range ev.Items {
			if e.Type != "Normal" { t.Log(e.InvolvedObject.Name, e.Reason, e.Message) }
		}
	}
}
