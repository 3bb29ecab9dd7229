package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/cluster"
	"github.com/chandler-fleet/chandler/services/installer/mirror"
)

var gvkDeployment = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}

// OLM tells whether OLM itself is at work in a cluster: two masters over the same kinds undo each other's work.
type OLM struct {
	client *cluster.Epoch
	log    *slog.Logger

	mu      sync.Mutex
	known   bool
	turn    int // counts the hints: an answer to a question that was asked before one is not kept
	running string
}

// NewOLM returns one that knows nothing yet.
func NewOLM(client *cluster.Epoch, log *slog.Logger) *OLM { return &OLM{client: client, log: log} }

// Known names the Deployments by which OLM works as Running saw them last, "" where it does not.
func (o *OLM) Known() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.running
}

// Hint has the next call of Running ask the cluster.
func (o *OLM) Hint() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known = false
	o.turn++
}

// Running names the Deployments by which OLM works, "" where it does not; changed reports another answer than the one
// before. It asks the cluster at first, so that nothing is done before it is known, and after each hint.
func (o *OLM) Running(ctx context.Context) (running string, changed bool, err error) {
	o.mu.Lock()
	running, known, turn := o.running, o.known, o.turn
	o.mu.Unlock()
	if known {
		return running, false, nil
	}
	found, err := o.deployments(ctx)
	if err != nil {
		return "", false, fmt.Errorf("look for OLM: %w", err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	running = strings.Join(mirror.OLMRunning(found), ", ")
	changed = o.running != running
	o.running, o.known = running, turn == o.turn
	if changed {
		o.log.WarnContext(ctx, "whether OLM is at work has changed", "running", running)
	}
	return running, changed, nil
}

func (o *OLM) deployments(ctx context.Context) ([]appsv1.Deployment, error) {
	list, err := o.client.List(ctx, gvkDeployment, metav1.NamespaceAll, mirror.OLMSelector())
	if err != nil {
		return nil, err
	}
	found := make([]appsv1.Deployment, len(list))
	for i := range list {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list[i].Object, &found[i]); err != nil {
			return nil, errs.Wrap(errs.Internal, err, "decode deployment %s", list[i].GetName())
		}
	}
	return found, nil
}
