package kube

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
)

// apiServer answers for its version, and serves the resources of admissionregistration.k8s.io/v1, none where there are
// none.
func apiServer(t *testing.T, gitVersion string, resources ...string) *Base {
	t.Helper()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Error(err)
		}
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s: something is written", r.Method, r.URL)
		}
		switch {
		case r.URL.Path == "/version":
			answer(w, version.Info{GitVersion: gitVersion})
		case r.URL.Path == "/apis/admissionregistration.k8s.io/v1" && len(resources) > 0:
			list := metav1.APIResourceList{
				TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
				GroupVersion: "admissionregistration.k8s.io/v1",
			}
			for _, name := range resources {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			answer(w, list)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	b, err := NewBase(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestSupported: which clusters can be served, by what their API servers say.
func TestSupported(t *testing.T) {
	t.Parallel()
	const webhooks, policies = "validatingwebhookconfigurations", "validatingadmissionpolicies"
	for _, c := range []struct {
		version   string
		resources []string
		says      string // "" where it can
	}{
		{"v1.30.0", []string{webhooks, policies}, ""},
		{"v1.34.4+k3s1", []string{webhooks, policies}, ""},
		{"v2.0.0", []string{policies}, ""},
		{"v1.30.0-eks-1234", []string{policies}, ""},
		{"v1.27.3", []string{webhooks}, "Kubernetes v1.27.3 is older than 1.30"},
		{"v1.29.10+67d3387", []string{webhooks, policies}, "older than 1.30"}, // OpenShift 4.16
		{"v1.29.10+67d3387", nil, "upgrade the cluster"},
		{"v1.31.0", []string{webhooks}, "does not serve ValidatingAdmissionPolicy"},
		{"v1.31.0", nil, "enable it"},
		{"unknown", []string{policies}, ""},
		{"unknown", []string{webhooks}, "(Kubernetes unknown) does not serve"},
	} {
		b := apiServer(t, c.version, c.resources...)
		got, err := b.Version(t.Context())
		if err != nil || got != c.version {
			t.Fatalf("version %s, %v", got, err)
		}
		err = b.CheckSupported(got)
		if c.says == "" && err != nil || c.says != "" &&
			(!IsUnsupported(err) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s with %v: %v, want %q", c.version, c.resources, err, c.says)
		}
	}
}
