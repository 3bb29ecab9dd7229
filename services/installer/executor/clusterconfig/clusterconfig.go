// Package clusterconfig gives operators what the cluster tells all of them: its proxy, and the secrets by which their
// images are pulled.
//
// It has two stages: Reader goes first, since overlays depend on what it reads; Stage writes once the operators are
// known.
package clusterconfig

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chandler-fleet/chandler/services/installer/csv"
	config "github.com/chandler-fleet/chandler/services/installer/executor/internal/clusterconfig"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/executor/overlay"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// Cache remembers what the cluster tells all operators, and where copies of its pull secrets are.
type Cache interface {
	Get(ctx context.Context) (config.All, error)
	// Copy keeps copies of pull secrets in a namespace, attached to accounts; left is notified of what was written.
	Copy(ctx context.Context, namespace string, secrets []config.PullSecret, accounts []string,
		left func(*unstructured.Unstructured)) error
}

// Stage gives operators the configuration of the cluster.
type Stage struct {
	Cache Cache
}

// Reader is the stage that reads the configuration of the cluster.
type Reader struct {
	Cache Cache
}

// Reconcile reads the configuration. Most reconciles ask the cluster nothing.
func (r Reader) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	sc.Found.Config, err = r.Cache.Get(ctx)
	return res, err
}

// Reconcile keeps the pull secrets where the operators of the namespace find them (R-IP-22). While one of these
// cannot be read, they stay.
func (s *Stage) Reconcile(ctx context.Context, sc *scope.Scope) (res scope.Result, err error) {
	if sc.Stopped() != nil || sc.Attempts.Waits("", scope.PartPullSecrets) {
		return res, nil
	}
	var accounts []string
	for _, m := range sc.Snapshot.Installed.Operators {
		accounts = append(accounts, csv.Accounts(m.CSV.Spec)...)
	}
	if len(accounts) == 0 && len(sc.Snapshot.Installed.Unreadable) > 0 {
		return res, nil
	}
	slices.Sort(accounts)
	err = s.Cache.Copy(ctx, sc.Namespace, sc.Found.Config.PullSecrets, slices.Compact(accounts), sc.Left)
	return res, sc.Attempts.Alone(ctx, "", scope.PartPullSecrets, err)
}

// Proxy gives operators the cluster's proxy, unless their subscription says something of one (R-SUB-10, R-PRX-1).
func (s *Stage) Proxy(sc *scope.Scope) overlay.Overlay {
	proxy := sc.Found.Config.Proxy
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool { return kind == kube.GVKDeployment.Kind },
		Input: func(scope.RenderTarget) any { return proxy },
		Apply: func(t scope.RenderTarget, body *unstructured.Unstructured) error {
			opened, err := sc.Env.Configs.Open(t.Config)
			if err != nil {
				return err
			}
			if overridden, err := config.Overridden(opened); overridden || err != nil {
				return err
			}
			return proxy.Apply(body)
		},
	}
}

// PullSecrets leaves Chandler's pull secrets on an account whose bundle brings a list of its own; on the others
// Reconcile puts them beside what is there.
func (s *Stage) PullSecrets(sc *scope.Scope) overlay.Overlay {
	secrets := sc.Found.Config.PullSecrets
	return overlay.Overlay{
		About: func(_ scope.RenderTarget, kind, _ string) bool {
			return kind == kube.GVKServiceAccount.Kind && len(secrets) > 0
		},
		Input: func(scope.RenderTarget) any { return config.Names(secrets) },
		Apply: func(_ scope.RenderTarget, body *unstructured.Unstructured) error { return config.Leave(body, secrets) },
	}
}
