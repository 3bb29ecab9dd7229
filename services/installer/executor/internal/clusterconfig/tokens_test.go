package clusterconfig

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"

	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// TestTokenAuth proves R-TOK-1: which mode of cloud tokens a cluster is in, row by row of the table at TokenAuth.
func TestTokenAuth(t *testing.T) {
	t.Parallel()
	object := func(version, kind, part string, fields map[string]any) runtime.Object {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind,
			"metadata": map[string]any{"name": "cluster"}, part: fields,
		}}
	}
	credentials := func(mode any) runtime.Object {
		return object("operator.openshift.io/v1", "CloudCredential", "spec", map[string]any{"credentialsMode": mode})
	}
	authentication := func(issuer string) runtime.Object {
		return object("config.openshift.io/v1", "Authentication", "spec",
			map[string]any{"serviceAccountIssuer": issuer})
	}
	platform := func(name string) runtime.Object {
		return object("config.openshift.io/v1", "Infrastructure", "status",
			map[string]any{"platformStatus": map[string]any{"type": name}})
	}
	const issuer = "https://issuer.example.com"
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"AWS": {
			[]runtime.Object{credentials("Manual"), authentication(issuer), platform("AWS")},
			protocol.TokenAuthAWS,
		},
		"Azure": {[]runtime.Object{
			credentials("Manual"), authentication(issuer),
			platform("Azure"),
		}, protocol.TokenAuthAzure},
		"GCP": {
			[]runtime.Object{credentials("Manual"), authentication(issuer), platform("GCP")},
			protocol.TokenAuthGCP,
		},
		"no such cloud": {[]runtime.Object{
			credentials("Manual"), authentication(issuer),
			platform("BareMetal"),
		}, protocol.TokenAuthNone},
		"the cluster mints": {
			[]runtime.Object{credentials("Mint"), authentication(issuer), platform("AWS")},
			protocol.TokenAuthNone,
		},
		"by default": {
			[]runtime.Object{credentials(""), authentication(issuer), platform("AWS")},
			protocol.TokenAuthNone,
		},
		"of another form": {
			[]runtime.Object{credentials(int64(1)), authentication(issuer), platform("AWS")},
			protocol.TokenAuthNone,
		},
		"its own issuer": {
			[]runtime.Object{credentials("Manual"), authentication(""), platform("AWS")},
			protocol.TokenAuthNone,
		},
		"no OpenShift": {nil, protocol.TokenAuthNone},
		"of an unknown platform yet": {
			[]runtime.Object{credentials("Manual"), authentication(issuer)},
			protocol.TokenAuthNone,
		},
	} {
		got, err := TokenAuth(t.Context(), &kube.Epoch{
			Dynamic: fake.NewSimpleDynamicClient(runtime.NewScheme(), c.objects...),
		})
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// TestTokenKinds: a kind is asked for once its definition is there.
func TestTokenKinds(t *testing.T) {
	t.Parallel()
	want := map[string]bool{
		"authentications.config.openshift.io": true, "infrastructures.config.openshift.io": true,
		"cloudcredentials.operator.openshift.io": true,
	}
	for _, k := range TokenKinds() {
		if !want[k.CRD] || !IsTokenKind(k.GVK) || !k.Status {
			t.Errorf("%+v", k)
		}
		delete(want, k.CRD)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
}
