package readmodel

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/rules"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxTold bounds what is remembered of bodies that do not open: a lost key can concern all there are.
const maxTold = 1000

// Bodies opens what stands beside the event log, for answers. One that does not open is marked in the answer about its
// thing; other things, and the rest of a page, are answered as ever. The log says it once for each body.
type Bodies struct {
	keys   bodies.Keys
	log    *slog.Logger
	failed metric.Int64Counter

	mu   sync.Mutex
	told map[string]bool
}

// OpenBodies opens by these keys.
func OpenBodies(keys bodies.Keys, log *slog.Logger) (*Bodies, error) {
	c, err := otel.Meter("github.com/chandler-fleet/chandler/services/gateway").Int64Counter("chandler.bodies.unreadable",
		metric.WithDescription("bodies that did not open for an answer, each once a process, by kind and rule"))
	b := &Bodies{keys: keys, log: log, failed: c, told: map[string]bool{}}
	return b, errs.Wrap(errs.Internal, err, "make metrics")
}

// Opened are bodies that were read, by commitment.
type Opened map[string]bodies.Body

// Read reads the bodies of commitments; "" is none.
func (b *Bodies) Read(ctx context.Context, q pg.Querier, tenant string, commitments ...string) (Opened, error) {
	commitments = slices.DeleteFunc(slices.Clone(commitments), func(c string) bool { return c == "" })
	if len(commitments) == 0 {
		return nil, nil
	}
	all, err := b.keys.ReadAll(ctx, q, bodies.Table, tenant, commitments)
	for commitment, body := range all {
		if body.Err != nil {
			b.tell(ctx, tenant, commitment, body)
		}
	}
	return all, err
}

// tell notes once that a body does not open. Where too many do not, they are noted again.
func (b *Bodies) tell(ctx context.Context, tenant, commitment string, body bodies.Body) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told[commitment] {
		return
	}
	if len(b.told) >= maxTold {
		clear(b.told)
	}
	b.told[commitment] = true
	b.failed.Add(ctx, 1, metric.WithAttributes(attribute.String("kind", string(body.Kind)),
		attribute.String("rule", ruleOf(body.Err))))
	b.log.WarnContext(ctx, "a body does not open; answers are given without it", "tenant", tenant, "commitment", commitment,
		"error", body.Err)
}

func ruleOf(err error) string {
	if e, ok := errors.AsType[*errs.Error](err); ok {
		return e.Rule
	}
	return ""
}

// Text is a body, nil where it was erased or never was. One that does not open is nil, too, and marked.
func (o Opened) Text(commitment, part string, marks *[]model.Unreadable) []byte {
	b := o[commitment]
	if b.Err != nil {
		id := ruleOf(b.Err)
		r, _ := rules.Find(id)
		*marks = append(*marks, model.Unreadable{
			Part: part, Rule: id, KeyID: b.KeyID, Message: r.Demands + " " + r.Fix,
		})
	}
	return b.Text
}

// Annotations adds the annotations behind a commitment; those that were erased are none.
func (o Opened) Annotations(commitment string, into *model.Metadata, marks *[]model.Unreadable) error {
	body := o.Text(commitment, model.PartAnnotations, marks)
	if body == nil {
		return nil
	}
	return errs.Wrap(errs.Internal, json.Unmarshal(body, &into.Annotations), "read annotations")
}

// Annotations reads and adds the annotations behind a commitment.
func (b *Bodies) Annotations(
	ctx context.Context, q pg.Querier, tenant, commitment string, into *model.Metadata, marks *[]model.Unreadable,
) error {
	o, err := b.Read(ctx, q, tenant, commitment)
	if err != nil {
		return err
	}
	return o.Annotations(commitment, into, marks)
}
