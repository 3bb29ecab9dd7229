package testcluster

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWorkloadsRun(t *testing.T) {
	c := New(t, Options{Name: "workloads", Nodes: 2})

	t.Run("version", func(t *testing.T) {
		version, err := c.client.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if got := version.Major + "." + version.Minor; !strings.HasPrefix(version.GitVersion, "v"+got+".") ||
			got == "." {
			t.Errorf("version is %+v", version)
		}
	})
	t.Run("nodes", func(t *testing.T) {
		nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 2 {
			t.Errorf("want 2 nodes, got %d, %v", len(nodes.Items), err)
		}
	})
	t.Run("deployment", func(t *testing.T) {
		deployment := probe()
		deployment.Spec.Replicas = new(int32(3))
		createDeployment(t, c, metav1.NamespaceDefault, deployment)
	})
	t.Run("job", func(t *testing.T) {
		jobs := c.client.BatchV1().Jobs(metav1.NamespaceDefault)
		if _, err := jobs.Create(t.Context(), newJob("once"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, func(ctx context.Context) error {
			job, err := jobs.Get(ctx, "once", metav1.GetOptions{})
			if err == nil && job.Status.Succeeded != 1 {
				err = fmt.Errorf("job status is %+v", job.Status)
			}
			return err
		})
	})
	t.Run("probe has left nothing", func(t *testing.T) {
		pods, err := c.client.CoreV1().Pods(probeNamespace).List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) > 0 {
			t.Errorf("pods: %v, %v", pods.Items, err)
		}
	})
}

// createDeployment returns when the deployment is Available with all its replicas.
func createDeployment(t *testing.T, c *Cluster, namespace string, deployment *appsv1.Deployment) {
	t.Helper()
	deployments := c.client.AppsV1().Deployments(namespace)
	created, err := deployments.Create(t.Context(), deployment, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		now, err := deployments.Get(ctx, created.Name, metav1.GetOptions{})
		if err == nil && now.Status.AvailableReplicas != *created.Spec.Replicas {
			err = fmt.Errorf("deployment status is %+v", now.Status)
		}
		return err
	})
}

func newJob(name string) *batchv1.Job {
	pod := probe().Spec.Template
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{Template: pod}}
}

func TestTokensAreAccepted(t *testing.T) {
	c, namespace := Shared(t)
	token, err := c.client.CoreV1().ServiceAccounts(namespace).
		CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	review, err := c.client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token.Status.Token},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + namespace + ":default"; review.Status.User.Username != want {
		t.Errorf("the token is taken for %+v", review.Status)
	}
}

func TestCertificatesAreSigned(t *testing.T) {
	c, name := Shared(t)
	requests := c.client.CertificatesV1().CertificateSigningRequests()
	request, err := requests.Create(t.Context(), newCertificateRequest(t, name), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test",
	}}
	if _, err := requests.UpdateApproval(t.Context(), name, request, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func(ctx context.Context) error {
		now, err := requests.Get(ctx, name, metav1.GetOptions{})
		if err == nil && !bytes.Contains(now.Status.Certificate, []byte("BEGIN CERTIFICATE")) {
			err = errors.New("no certificate yet")
		}
		return err
	})
}

func newCertificateRequest(t *testing.T, name string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: "somebody"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
		},
	}
}
