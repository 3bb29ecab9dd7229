// Package servicekeys has the processes of services sign what they say to each other. Each has an Ed25519 key that
// never leaves it, and registers the public half in the database, which knows by its role which service it is
// (eventlog.exchange_keys). So an answer is believed of who can log in to PostgreSQL as its service, whoever else can
// write to the bus (DESIGN D7).
//
// Killed at any line, a process begins again with another key; its old one is believed for an hour more, and nobody has
// it.
package servicekeys

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/keys"
	"github.com/chandler-fleet/chandler/libs/pg"
)

const (
	// exchangeEvery is how often a process says that it lives. The database believes a key for an hour after the last
	// time: a fail-over takes no voice away.
	exchangeEvery = time.Minute
	// exchangeWithin bounds one exchange.
	exchangeWithin = 5 * time.Second
	// pause lies between two reads of the keys because of a signature with a key that is not known: who signs with
	// keys of its own costs the database four statements a second.
	pause = 250 * time.Millisecond
)

// Ring holds the key of this process and those of the others. Its methods may be called side by side.
type Ring struct {
	pool    *pg.Pool
	service string
	log     *slog.Logger
	key     ed25519.PrivateKey

	reading chan struct{} // holds one token: who has it reads the keys
	mu      sync.Mutex
	known   map[keys.ID]processKey
	read    time.Time // when the keys were read last
}

// processKey is the key of a process of a service.
type processKey struct {
	service string
	public  ed25519.PublicKey
}

// Open makes a key for this process of a service (its name, as in libs/natsauth) and registers it. The role of the pool
// has to be that of the service; else it is errs.Forbidden.
func Open(ctx context.Context, pool *pg.Pool, service string, log *slog.Logger) (*Ring, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("make a key of the service %s: %w", service, err)
	}
	r := &Ring{pool: pool, service: service, log: log, key: key, reading: make(chan struct{}, 1)}
	err = r.exchange(ctx)
	if errs.Is(err, errs.Forbidden) {
		return nil, errs.Wrap(errs.Forbidden, err, "CHANDLER_DATABASE_URL does not have the role of the service %s",
			service)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Run keeps the key registered until ctx ends, and returns nil then.
func (r *Ring) Run(ctx context.Context) error {
	t := time.NewTicker(exchangeEvery)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			// What fails is tried again: the key is believed for an hour.
			if err := r.exchange(ctx); err != nil && ctx.Err() == nil {
				r.log.DebugContext(ctx, "cannot exchange keys with the other services; trying again", "error", err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// Sign signs a text with the key of this process; the key's id is in the signature.
func (r *Ring) Sign(text []byte) (string, error) {
	signature, err := keys.Sign(r.key, text)
	return base64.StdEncoding.EncodeToString(signature), err
}

// Signed reports whether a process of one of these services signed a text. A key that is not known is looked up, which
// may take pause; while PostgreSQL is away, only known keys are believed.
func (r *Ring) Signed(ctx context.Context, by []string, text []byte, signature string) bool {
	raw, err := base64.StdEncoding.DecodeString(signature)
	if err != nil {
		return false
	}
	id, ok := keys.SignedBy(raw)
	if !ok {
		return false
	}
	k, ok := r.find(id)
	if !ok {
		if err := r.readAgain(ctx); err != nil {
			r.log.DebugContext(ctx, "cannot look up the key of a signature", "key", id.String(), "error", err)
			return false
		}
		k, ok = r.find(id)
	}
	return ok && slices.Contains(by, k.service) && keys.Accept(k.public).Verify(text, raw)
}

func (r *Ring) find(id keys.ID) (processKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.known[id]
	return k, ok
}

// readAgain reads the keys, pause after the last time at the soonest. Callers that come together share one read.
func (r *Ring) readAgain(ctx context.Context) error {
	asked := time.Now()
	select {
	case r.reading <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.reading }()
	r.mu.Lock()
	last := r.read
	r.mu.Unlock()
	if last.After(asked) {
		return nil
	}
	select {
	case <-time.After(time.Until(last.Add(pause))):
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.exchange(ctx)
}

func (r *Ring) exchange(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	began := time.Now()
	public, _ := r.key.Public().(ed25519.PublicKey) // it is one
	rows, err := r.pool.Query(ctx, `select service, public_key from eventlog.exchange_keys($1, $2)`, r.service,
		[]byte(public))
	if err != nil {
		return fmt.Errorf("exchange keys with the other services: %w", pg.Err(err))
	}
	known := map[keys.ID]processKey{}
	var service string
	var key []byte
	_, err = pgx.ForEachRow(rows, []any{&service, &key}, func() error {
		known[keys.IDOf(keys.KindSign, key)] = processKey{service: service, public: slices.Clone(key)}
		return nil
	})
	if err != nil {
		return fmt.Errorf("exchange keys with the other services: %w", pg.Err(err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known, r.read = known, began
	return nil
}
