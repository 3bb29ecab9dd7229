package access

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// requestTimeout bounds one request of this package.
const requestTimeout = 20 * time.Second

// Request asks for a token of the hub's account that lives for at most life. An API server may give less: what it
// answers counts.
func Request(ctx context.Context, config *rest.Config, life time.Duration) (string, clusteraccess.Token, error) {
	base, err := kube.NewBase(config) // which bounds what the cluster answers
	if err != nil {
		return "", clusteraccess.Token{}, err
	}
	return request(ctx, base.Kube, life)
}

func request(ctx context.Context, client kubernetes.Interface, life time.Duration) (
	string, clusteraccess.Token, error,
) {
	seconds := int64(max(life, clusteraccess.MinLife) / time.Second)
	answer, err := client.CoreV1().ServiceAccounts(clusteraccess.Namespace).CreateToken(ctx, clusteraccess.Hub,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}},
		metav1.CreateOptions{})
	if err != nil {
		return "", clusteraccess.Token{}, fmt.Errorf("ask for a token of %s: %w",
			clusteraccess.User(clusteraccess.Hub), err)
	}
	t, err := clusteraccess.Answered(answer.Status.Token, answer.Status.ExpirationTimestamp.Time)
	return answer.Status.Token, t, err
}
