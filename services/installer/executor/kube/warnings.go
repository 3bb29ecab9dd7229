package kube

import (
	"context"
	"slices"
	"sync"

	"k8s.io/client-go/rest"
)

// The bounds of what a step log holds of warnings.
const (
	maxWarnings     = 20
	maxWarningBytes = 300
)

// Warnings gathers what the API server says beside its answers (R-IP-25), each text once.
type Warnings struct {
	mu   sync.Mutex
	list []string
}

type warningsKey struct{}

// GatherWarnings returns a context whose requests' warnings are gathered.
func GatherWarnings(ctx context.Context) (context.Context, *Warnings) {
	w := &Warnings{}
	return context.WithValue(ctx, warningsKey{}, w), w
}

// List returns the warnings in the order in which they came, nil without one.
func (w *Warnings) List() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

func (w *Warnings) add(text string) {
	if len(text) > maxWarningBytes {
		text = text[:maxWarningBytes] + "…"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) < maxWarnings && !slices.Contains(w.list, text) {
		w.list = append(w.list, text)
	}
}

// warn notes a warning where the context gathers them.
func warn(ctx context.Context, text string) {
	if w, ok := ctx.Value(warningsKey{}).(*Warnings); ok {
		w.add(text)
	}
}

// warningHandler takes the warnings of all requests; nobody waits for those of reads and leases.
type warningHandler struct{}

var _ rest.WarningHandlerWithContext = warningHandler{}

// miscWarning is the only code that means a warning (RFC 7234 in Kubernetes' use).
const miscWarning = 299

func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	if code == miscWarning && text != "" {
		warn(ctx, text)
	}
}
