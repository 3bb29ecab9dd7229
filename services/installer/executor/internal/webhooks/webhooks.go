// Package webhooks finds out whose an admission webhook is that the API server names in a refusal.
package webhooks

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chandler-fleet/chandler/libs/render"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
	"github.com/chandler-fleet/chandler/services/installer/readiness"
)

// cachedFor is how long the configurations of a cluster are not read again: a webhook that refuses everything is asked
// about by every plan that it blocks.
const cachedFor = 30 * time.Second

// Owner is a configuration that has a webhook of a name.
type Owner struct {
	Kind          string
	Configuration string
	// Operator is whose it is, by its labels; the zero value where it is no operator's.
	Operator kube.Operator
}

// String names the owner for people.
func (o Owner) String() string {
	of := o.Kind + " " + o.Configuration
	if (o.Operator == kube.Operator{}) {
		return of + ", which is no operator's"
	}
	return "operator " + o.Operator.Name + " in namespace " + o.Operator.Namespace + " (" + of + ")"
}

// Owners knows the webhooks of one cluster. Nothing is read until somebody asks.
type Owners struct {
	client *kube.Epoch
	now    func() time.Time

	mu     sync.Mutex
	until  time.Time
	byName map[string][]Owner
	rules  rules // of all webhooks
}

// New returns what has read nothing yet.
func New(client *kube.Epoch, now func() time.Time) *Owners {
	return &Owners{client: client, now: now}
}

// Of returns the configurations that have a webhook of this name: mostly one, none where it is gone by now.
func (o *Owners) Of(ctx context.Context, webhook string) ([]Owner, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.read(ctx)
	return slices.Clone(o.byName[webhook]), err
}

// kinds says what the webhooks of the cluster are asked about.
func (o *Owners) kinds(ctx context.Context) (rules, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	err := o.read(ctx)
	return o.rules, err
}

// read reads the configurations again where what is known of them is old; the lock is held.
func (o *Owners) read(ctx context.Context) error {
	if o.now().Before(o.until) {
		return nil
	}
	found, asked := map[string][]Owner{}, rules(nil)
	for _, gvk := range []schema.GroupVersionKind{render.GVKValidatingWebhook, render.GVKMutatingWebhook} {
		list, err := o.client.List(ctx, gvk, "", "")
		if err != nil {
			return err
		}
		for i := range list {
			owner := Owner{Kind: gvk.Kind, Configuration: list[i].GetName(), Operator: kube.OwnerOf(&list[i])}
			for _, name := range names(&list[i]) {
				found[name] = append(found[name], owner)
			}
			asked = append(asked, rulesOf(&list[i])...)
		}
	}
	o.byName, o.rules, o.until = found, asked, o.now().Add(cachedFor)
	return nil
}

// names are those of the webhooks of a configuration.
func names(o *unstructured.Unstructured) []string {
	list, _, err := unstructured.NestedSlice(o.Object, "webhooks")
	if err != nil {
		return nil
	}
	var out []string
	for _, one := range list {
		if m, ok := one.(map[string]any); ok {
			if name, ok := m["name"].(string); ok && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	}
	return out
}

// Sentence says whose a webhook is, "" where that is not known.
func Sentence(webhook string, owners []Owner) string {
	if len(owners) == 0 {
		return ""
	}
	texts := make([]string, len(owners))
	for i, o := range owners {
		texts[i] = o.String()
	}
	slices.Sort(texts)
	return "webhook " + webhook + " belongs to " + strings.Join(texts, " and to ")
}

// Known are the configurations that have a webhook of a name, none where that cannot be found out.
func (o *Owners) Known(ctx context.Context, log *slog.Logger, webhook string) []Owner {
	if webhook == "" {
		return nil
	}
	owners, err := o.Of(ctx, webhook)
	if err != nil {
		log.DebugContext(ctx, "it is not known whose a webhook is", "webhook", webhook, "error", err)
	}
	return owners
}

// Explain adds to a failure that an admission webhook is to blame for whose that is.
func (o *Owners) Explain(ctx context.Context, log *slog.Logger, f *failure.Failure) *failure.Failure {
	if f.Reason != failure.ReasonDenied && f.Reason != failure.ReasonWebhook {
		return f
	}
	name, _ := readiness.Webhook(f.Message)
	text := Sentence(name, o.Known(ctx, log, name))
	if text == "" {
		return f
	}
	named := *f
	named.Message += "; " + text
	return &named
}
