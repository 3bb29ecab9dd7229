package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// Documents reads what decisions rest on: their inputs, their explanations, the configuration of subscriptions.
type Documents struct {
	pool   *pg.Pool
	bodies bodies.Keys
}

// Record reads the input of a decision; errs.NotFound where it is not kept.
func (d *Documents) Record(ctx context.Context, tenant, digest string) (resolution.Record, error) {
	var r resolution.Record
	var body []byte
	err := d.pool.QueryRow(ctx, `select document from resolver.inputs where tenant = $1 and digest = $2`, tenant,
		digest).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errs.New(errs.NotFound,
			"the input of this decision (%s) is not kept any more: inputs are kept while they concern what is "+
				"installed, planned or subscribed, and for the retention of this installation (setting retention) after; "+
				"the decision itself stays in the log", digest)
	}
	if err != nil {
		return r, pg.Err(err)
	}
	return unpackRecord(digest, body)
}

// Explanation reads an explanation by its digest; nil where it was collected.
func (d *Documents) Explanation(ctx context.Context, tenant, digest string) (*resolution.Explanation, error) {
	var raw []byte
	err := d.pool.QueryRow(ctx, `select document from resolver.explanations where tenant = $1 and digest = $2`, tenant,
		digest).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil //nolint:nilnil // not kept any more is no error
	}
	if err != nil {
		return nil, pg.Err(err)
	}
	e := new(resolution.Explanation)
	return e, errs.Wrap(errs.Internal, json.Unmarshal(raw, e), "read explanation %s", digest)
}

// Config reads a subscription's configuration by its commitment; nil without one. One that was erased
// is errs.NotFound.
func (d *Documents) Config(ctx context.Context, tenant, commitment string) (json.RawMessage, error) {
	if commitment == "" {
		return nil, nil
	}
	body, err := d.bodies.Read(ctx, d.pool, bodies.View, tenant, commitment)
	if err == nil && body == nil {
		return nil, errs.New(errs.NotFound, "the configuration %s was erased", commitment)
	}
	return body, err
}

// input keeps what a decision rests on. A record without semantics stands for one that is kept already.
func (w writer) input(r resolution.Record) error {
	if r.Semantics == "" {
		return nil
	}
	d, err := r.Digest()
	if err != nil {
		return err
	}
	if w.kept[d] {
		return nil
	}
	w.kept[d] = true
	body, err := w.to.packRecord(r)
	if err != nil {
		return fmt.Errorf("keep input %s: %w", d.Short(), err)
	}
	// The input goes first: it waits for a sweep that removes an old one, whose references go along.
	w.queue(`insert into resolver.inputs as i (tenant, digest, document, created, referred)
		values ($1, $2, $3, $4, true) `+keepAnew,
		w.l.Tenant, string(d), body, w.to.now(), w.to.now().Add(-keptAnew))
	w.refer(refPackage, string(d), packagesOf(r))
	return nil
}

func (w writer) explanation(t decide.SubscriptionEvent) error {
	body, err := encode(t.Explanation)
	if err != nil {
		return err
	}
	w.queue(`insert into resolver.explanations as i (tenant, digest, document, created) values ($1, $2, $3, $4) `+
		keepAnew,
		w.l.Tenant, t.Outcome.Explanation, body, w.to.now(), w.to.now().Add(-keptAnew))
	return nil
}

func (d *Decisions) packRecord(r resolution.Record) ([]byte, error) {
	raw, err := digest.Canonical(r)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode the input")
	}
	return d.pack.EncodeAll(raw, nil), nil
}

// maxRecordBytes bounds an unpacked input: the properties of some hundred operators.
const maxRecordBytes = 64 << 20

func unpackRecord(d string, body []byte) (r resolution.Record, err error) {
	raw, err := unpack(body)
	if err != nil {
		return r, fmt.Errorf("unpack input %s: %w", d, err)
	}
	err = json.Unmarshal(raw, &r)
	return r, errs.Wrap(errs.Internal, err, "read input %s", d)
}

// unpack is what was packed with zstd, within maxRecordBytes.
func unpack(packed []byte) ([]byte, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRecordBytes))
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "zstd")
	}
	defer dec.Close()
	raw, err := dec.DecodeAll(packed, nil)
	return raw, errs.Wrap(errs.Internal, err, "zstd")
}
