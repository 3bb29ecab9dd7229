package address_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/services/installer/executor/address"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// A kubeconfig leads to no service of this machine and to nothing of its link, whatever its server is called.
func TestAddressesOfClusters(t *testing.T) {
	t.Parallel()
	for server, ofMachine := range map[string]bool{ // nobody listens at port 1
		"https://127.0.0.1:1": true, "https://localhost:1": true, "https://[::1]:1": true,
		"https://169.254.169.254:1": false, "http://169.254.169.254/latest": false, "https://[fe80::1%25lo]:1": false,
	} {
		for _, local := range []bool{false, true} {
			base, err := kube.NewBase(&rest.Config{Host: server, Dial: address.Dial(local)})
			if err != nil {
				t.Fatal(err)
			}
			_, err = base.Kube.CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{})
			if allowed := local && ofMachine; address.IsRefused(err) == allowed {
				t.Errorf("%s, local %v: %v", server, local, err)
			}
			if !address.IsRefused(err) {
				continue
			}
			state, reason := failure.OfCluster(err)
			if state != "Refused" || reason != failure.ReasonAddress ||
				!strings.Contains(err.Error(), "an address of this") {
				t.Errorf("%s is %s, %s: %v", server, state, reason, err)
			}
		}
	}
}
