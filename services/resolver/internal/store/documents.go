package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/resolver/decide"
	"github.com/chandler-fleet/chandler/services/resolver/resolution"
)

// maxRecordBytes bounds an unpacked input: the properties of some hundred operators.
const maxRecordBytes = 64 << 20

func (s *Store) packRecord(r resolution.Record) ([]byte, error) {
	raw, err := digest.Canonical(r)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode the input")
	}
	return s.pack.EncodeAll(raw, nil), nil
}

// Record reads the input of a decision; errs.NotFound where it is not kept.
func (s *Store) Record(ctx context.Context, tenant, d string) (resolution.Record, error) {
	var r resolution.Record
	var body []byte
	err := s.pool.QueryRow(ctx, `select document from resolver.inputs where tenant = $1 and digest = $2`, tenant,
		d).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return r, errs.New(errs.NotFound,
			"the input of this decision (%s) is not kept any more: inputs are kept while they concern what is "+
				"installed, planned or subscribed, and for %d days after; the decision itself stays in the log", d,
			int(Retention.Hours()/24))
	}
	if err != nil {
		return r, pg.Err(err)
	}
	return unpackRecord(d, body)
}

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

// Config reads a subscription's configuration by its commitment; nil without one. One that was erased
// is errs.NotFound.
func (s *Store) Config(ctx context.Context, tenant, commitment string) (json.RawMessage, error) {
	if commitment == "" {
		return nil, nil
	}
	var body []byte
	err := s.pool.QueryRow(ctx, `select body from gateway_api.bodies where tenant = $1 and commitment = $2
		and kind = 'subscription-config'`,
		tenant, commitment).Scan(&body)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, errs.New(errs.NotFound, "the configuration %s was erased", commitment)
	}
	return body, pg.Err(err)
}

// Subscription reads what was last recorded of one subscription.
func (s *Store) Subscription(ctx context.Context, tenant string, scope resolution.Scope, name string) (
	decide.Outcome, error,
) {
	var o decide.Outcome
	var raw json.RawMessage
	err := s.pool.QueryRow(ctx, `select outcome from resolver.subscriptions where tenant = $1 and cluster = $2
		and namespace = $3 and name = $4`,
		tenant, scope.Cluster, scope.Namespace, name).Scan(&raw)
	if errors.Is(err, pgx.ErrNoRows) {
		return o, errs.New(errs.NotFound, "there is no subscription %s in %s/%s", name, scope.Cluster, scope.Namespace)
	}
	if err != nil {
		return o, pg.Err(err)
	}
	err = json.Unmarshal(raw, &o)
	return o, errs.Wrap(errs.Internal, err, "read the outcome of %s", name)
}
