package store

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/services/gateway/access"
)

const (
	// KeyLife is how long the answer to a request with an Idempotency-Key is kept: as long as a program that was
	// stopped over night goes on repeating.
	KeyLife = 24 * time.Hour
	// keyBatch bounds how many expired answers one statement deletes.
	keyBatch = 1000
	// keyInterval is how often expired answers are deleted. Until then they are not given any more.
	keyInterval = 10 * time.Minute
	// maxKept bounds an answer that is kept; those to intents are some kilobytes.
	maxKept = 4 << 20
	// KeyedRequests bounds the requests with a key that are carried out at a time. Each holds a connection and may read
	// on another one: half of those of pg.RequestConns always leaves some for that, and for requests without a key.
	KeyedRequests = pg.RequestConns / 2
	// MaxKeysOfOne bounds the answers that are kept for one actor, so that nobody fills the disk by keys: one intent in
	// nine seconds, day and night. Nobody intends more by hand, and programs apply sets of objects.
	MaxKeysOfOne = 10_000
	// sealInfo says what a key that is derived of a bearer token is for.
	sealInfo = "chandler idempotency answer v1"
)

// Errors of a key.
var (
	ErrKeyInFlight = errors.New("a request with this Idempotency-Key is being carried out")
	ErrKeyReused   = errors.New("this Idempotency-Key was used for another request")
	ErrKeyUnread   = errors.New("what was asked with this Idempotency-Key was carried out for another bearer token, " +
		"or for another machine, which alone can read the answer")
	ErrKeysFull = fmt.Errorf("%d answers are kept for this person or program, which is the limit: each is for %d hours; "+
		"send the request without an Idempotency-Key, or later", MaxKeysOfOne, int(KeyLife.Hours()))
)

// errNotKept takes a transaction back whose answer is no success.
var errNotKept = errors.New("the request was refused")

// Keys keeps the answers to requests with an Idempotency-Key.
type Keys struct {
	Pool *pg.Pool // sees one tenant at a time
	Work *pg.Pool // for all tenants
	Slog *slog.Logger
	// Bodies seal the answers to machines that show a certificate.
	Bodies bodies.Keys
}

// KeyedRequest is a request with a key.
type KeyedRequest struct {
	Tenant, Actor, Key string
	// Bearer is the token that was shown; where it is "", Machine is whose certificate was, by its identity.
	Bearer, Machine string
	Digest          [sha256.Size]byte // of method, address, content type and body
}

// Answer is what was answered.
type Answer struct {
	Status int                 `json:"status"`
	Header map[string][]string `json:"header"`
	Body   []byte              `json:"body"`
	// Used are the rights by which it was carried out: who has lost one of them does not get the answer again.
	Used access.Used `json:"used"`
}

// Do answers a request: by what was answered before, or by carrying it out. The key and the answer are written in the
// transaction that carryOut is given, so that both are there or neither, wherever the process is killed. An answer that
// is no success takes the transaction back and is not kept: nothing was done, and the request may be sent again.
func (k *Keys) Do(
	ctx context.Context, r KeyedRequest, carryOut func(tx pgx.Tx) Answer,
) (answer Answer, replayed bool, err error) {
	err = k.Pool.TenantTx(ctx, r.Tenant, func(tx pgx.Tx) error {
		if answer, replayed, err = k.known(ctx, tx, r); err != nil || replayed {
			return err
		}
		answer = carryOut(tx)
		if answer.Status < 200 || answer.Status > 299 {
			return errNotKept
		}
		return k.keep(ctx, tx, r, answer)
	})
	if errors.Is(err, errNotKept) {
		err = nil
	}
	return answer, replayed, err
}

// Try carries a request out in a transaction that is taken back, whatever the answer is.
func (k *Keys) Try(ctx context.Context, tenant string, carryOut func(tx pgx.Tx) Answer) (answer Answer, err error) {
	err = k.Pool.TenantTx(ctx, tenant, func(tx pgx.Tx) error {
		answer = carryOut(tx)
		return errNotKept
	})
	if errors.Is(err, errNotKept) {
		err = nil
	}
	return answer, err
}

// known looks for the answer to a request, and keeps others with its key out until the transaction ends.
func (k *Keys) known(ctx context.Context, tx pgx.Tx, r KeyedRequest) (a Answer, found bool, err error) {
	var mine bool
	lock := strings.Join([]string{"gateway.idempotency_keys", r.Tenant, r.Actor, r.Key}, "\n")
	if err := tx.QueryRow(ctx, `select pg_try_advisory_xact_lock(hashtextextended($1, 0))`, lock).Scan(&mine); err != nil {
		return a, false, errs.Wrap(errs.KindOf(pg.Err(err)), err, "take an Idempotency-Key")
	}
	if !mine {
		return a, false, ErrKeyInFlight
	}
	var request, sealed []byte
	err = tx.QueryRow(ctx, `select request, answer from gateway.idempotency_keys
		where tenant = $1 and actor = $2 and key = $3 and expires > now()`, r.Tenant, r.Actor, r.Key).
		Scan(&request, &sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, false, room(ctx, tx, r)
	case err != nil:
		return a, false, errs.Wrap(errs.KindOf(pg.Err(err)), err, "look for an Idempotency-Key")
	case [sha256.Size]byte(request) != r.Digest:
		return a, false, ErrKeyReused
	}
	raw, err := k.open(r, sealed)
	if err != nil {
		return a, false, err
	}
	if err := json.Unmarshal(raw, &a); err != nil {
		return a, false, errs.Wrap(errs.Internal, err, "read a kept answer")
	}
	return a, true, nil
}

// room refuses a new key of an actor for whom enough is kept.
func room(ctx context.Context, tx pgx.Tx, r KeyedRequest) error {
	var n int
	if err := tx.QueryRow(ctx, `select count(*) from (select from gateway.idempotency_keys
		where tenant = $1 and actor = $2 and expires > now() limit $3) live`, r.Tenant, r.Actor, MaxKeysOfOne).
		Scan(&n); err != nil {
		return errs.Wrap(errs.KindOf(pg.Err(err)), err, "count what is kept")
	}
	if n >= MaxKeysOfOne {
		return ErrKeysFull
	}
	return nil
}

func (k *Keys) keep(ctx context.Context, tx pgx.Tx, r KeyedRequest, a Answer) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "write an answer that is to be kept")
	}
	if len(raw) > maxKept {
		return errs.New(errs.Internal, "an answer of %d bytes is to be kept, %d is the limit", len(raw), maxKept)
	}
	sealed, err := k.seal(r, raw)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		insert into gateway.idempotency_keys (tenant, actor, key, request, answer, expires)
		values ($1, $2, $3, $4, $5, now() + $6)
		on conflict (tenant, actor, key) do update
		set request = excluded.request, answer = excluded.answer, expires = excluded.expires`,
		r.Tenant, r.Actor, r.Key, r.Digest[:], sealed, KeyLife)
	return errs.Wrap(errs.KindOf(pg.Err(err)), err, "keep an answer")
}

// seal seals an answer by what was shown. A certificate is no secret, so that the answer to a machine is sealed as
// bodies are that the gateway alone reads.
func (k *Keys) seal(r KeyedRequest, raw []byte) ([]byte, error) {
	if r.Bearer == "" {
		row, err := k.Bodies.Seal(r.Tenant, bodies.Row{Kind: bodies.Answer, Commitment: r.boundTo(), Body: raw})
		return slices.Concat([]byte(row.KeyID+keyIDEnd), row.Body), err
	}
	aead, err := sealer(r)
	if err != nil {
		return nil, err
	}
	return aead.Seal(nil, nil, raw, r.Digest[:]), nil //nolint:gosec // it draws a nonce and puts it in front
}

// open is the way back. It is ErrKeyUnread for whom the answer is not.
func (k *Keys) open(r KeyedRequest, sealed []byte) ([]byte, error) {
	if r.Bearer == "" {
		id, body, _ := bytes.Cut(sealed, []byte(keyIDEnd))
		raw, err := k.Bodies.Open(r.Tenant, bodies.Row{
			Kind: bodies.Answer, Commitment: r.boundTo(), KeyID: string(id), Body: body,
		})
		if err != nil || len(id) == 0 {
			return nil, ErrKeyUnread
		}
		return raw, nil
	}
	aead, err := sealer(r)
	if err != nil {
		return nil, err
	}
	raw, err := aead.Open(nil, nil, sealed, r.Digest[:])
	if err != nil {
		return nil, ErrKeyUnread
	}
	return raw, nil
}

// keyIDEnd ends the id of the key before an answer to a machine; no id has it.
const keyIDEnd = "\n"

// boundTo is what the answer to a machine is sealed for.
func (r KeyedRequest) boundTo() string {
	return strings.Join([]string{r.Machine, r.Actor, r.Key, hex.EncodeToString(r.Digest[:])}, "\n")
}

// sealer seals by a key that is derived of the bearer token. The database has only its hash: who reads the table reads
// no answer, which may hold a new token or the secret of a hook.
func sealer(r KeyedRequest) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(r.Bearer), []byte(r.Key), sealInfo, sha256.Size)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "derive the key of an answer")
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "derive the key of an answer")
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return aead, errs.Wrap(errs.Internal, err, "derive the key of an answer")
}

// Collect deletes answers that expired, until ctx ends.
func (k *Keys) Collect(ctx context.Context) error {
	t := time.NewTicker(keyInterval)
	defer t.Stop()
	for {
		if err := k.CollectOnce(ctx); err != nil && ctx.Err() == nil {
			k.Slog.WarnContext(ctx, "expired answers are not deleted; trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// CollectOnce deletes the answers of all tenants that expired.
func (k *Keys) CollectOnce(ctx context.Context) error {
	for {
		tag, err := k.Work.Exec(ctx, `delete from gateway.idempotency_keys where (tenant, actor, key) in (
			select tenant, actor, key from gateway.idempotency_keys where expires <= now()
			order by expires limit $1 for update skip locked)`, keyBatch)
		if err != nil {
			return errs.Wrap(errs.KindOf(pg.Err(err)), err, "delete expired answers")
		}
		if tag.RowsAffected() < keyBatch {
			return nil
		}
	}
}
