package executorhost

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
)

const (
	// renewAgain is the wait after a token could not be had or stored: half of a life is left, 5 minutes at least.
	renewAgain = 30 * time.Second
	// requestsAtOnce bounds the tokens that are asked for at a time: clusters that were registered together are due
	// together, and each takes a connection to the database for a moment.
	requestsAtOnce = 8
	// renewTimeout bounds one rotation, with the wait for its place.
	renewTimeout = time.Minute
)

// namespaceRotation is the UUIDv5 namespace of the ids of rotations. It is arbitrary and must never change.
var namespaceRotation = uuid.MustParse("0b6f4f0e-6c1a-5b53-9a5e-6d1f6f6f7c21")

// adopt reports whether an executor runs with the stored credential, or can go on with it: it has another token of the
// same account and cluster, which this replica or another one has stored.
func (h *Host) adopt(r *hosted, s stored) bool {
	h.mu.Lock()
	same, busy := r.key == s.commitment, r.renewing
	h.mu.Unlock()
	if same || busy {
		return true
	}
	if r.source == nil {
		return false
	}
	config, cfg, err := decrypt(s.ciphertext, h.c.Identity, s.waived)
	if err != nil {
		return false
	}
	t, ok := clusteraccess.Parse(cfg.BearerToken)
	if !ok || !sameCluster(config, r.config) {
		return false
	}
	// One that is older was read before it was followed, or comes from a backup: the next token takes its place.
	if !t.Issued.Before(r.source.Token().Issued) {
		r.source.Set(cfg.BearerToken, t, time.Time{})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.key, r.config = s.commitment, config
	return true
}

// sameCluster reports whether two kubeconfigs differ by their tokens at most.
func sameCluster(a, b kubeconfig.Config) bool {
	const token = "-"
	x, err := a.WithToken(token).Canonical()
	if err != nil {
		return false
	}
	y, err := b.WithToken(token).Canonical()
	return err == nil && bytes.Equal(x, y)
}

// renew asks for the next token where half of the life of the present one is over, beside everything else.
//
// Killed before the new token is stored, the present one is taken until it ends, and the next start asks anew. Killed
// after that, whoever runs the executor next reads the new one. Two replicas that do it at once get a token each: the
// first that is stored counts, the other one ends by itself.
func (h *Host) renew(ctx context.Context, r *hosted) {
	if r.source == nil || h.c.Request == nil {
		return
	}
	now := h.c.Now()
	h.mu.Lock()
	due := !r.renewing && !now.Before(r.source.Due()) && now.Sub(r.tried) >= renewAgain
	if due {
		r.renewing, r.tried = true, now
	}
	h.mu.Unlock()
	if !due {
		return
	}
	h.renewing.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, renewTimeout)
		defer cancel()
		err := h.rotate(ctx, r)
		h.mu.Lock()
		r.renewing = false
		h.mu.Unlock()
		switch {
		case err == nil:
		case errs.Is(err, errs.Conflict):
			h.c.Log.DebugContext(ctx, "another token was stored meanwhile", "cluster", r.target.Cluster)
		default:
			h.c.Log.WarnContext(ctx, "the next token of a cluster cannot be had; the present one is used until it ends",
				"cluster", r.target.Cluster, "ends", r.source.Token().Expires, "error", err)
		}
	})
}

// rotate asks for a token, stores it and uses it. It is errs.Conflict where another credential was stored meanwhile.
func (h *Host) rotate(ctx context.Context, r *hosted) (err error) {
	defer func() { // the answer is a cluster's, and other clusters are served beside this one
		if recover() != nil {
			err = errs.New(errs.Internal, "a panic over an answer of the cluster")
		}
	}()
	select {
	case h.requests <- struct{}{}:
		defer func() { <-h.requests }()
	case <-ctx.Done():
		return ctx.Err()
	}
	h.mu.Lock()
	was, config := r.key, r.config
	h.mu.Unlock()
	obtained := h.c.Now()
	text, token, err := h.c.Request(ctx, r.target.REST, r.source.Token().Life())
	if err != nil {
		return err
	}
	config = config.WithToken(text)
	raw, err := config.Canonical()
	if err != nil {
		return err
	}
	commitment, err := h.store(ctx, r.target, was, raw, token)
	if err != nil {
		return err
	}
	r.source.Set(text, token, obtained)
	h.mu.Lock()
	r.key, r.config = commitment, config
	h.mu.Unlock()
	h.c.Log.InfoContext(ctx, "the next token of a cluster is used", "cluster", r.target.Cluster, "ends", token.Expires)
	return nil
}

// store puts a kubeconfig in the place of the one with commitment was, and records that, in one transaction.
func (h *Host) store(ctx context.Context, t Target, was string, raw []byte, token clusteraccess.Token) (
	commitment string, err error,
) {
	key := h.c.Identity.Active()
	sealed, err := key.Seal(raw)
	if err != nil {
		return "", err
	}
	salt := make([]byte, digest.SaltBytes)
	if _, err := rand.Read(salt); err != nil {
		return "", errs.Wrap(errs.Internal, err, "draw a salt")
	}
	commitment = digest.Commitment(salt, sealed)
	err = h.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		var stored bool
		if err := tx.QueryRow(ctx, `select gateway_api.rotate_cluster_credential($1, $2, $3, $4, $5, $6, $7)`, t.Tenant,
			t.Cluster, was, commitment, salt, sealed, key.ID.String()).Scan(&stored); err != nil {
			return err
		}
		if !stored {
			return errs.New(errs.Conflict, "the credential of cluster %q was replaced meanwhile", t.Cluster)
		}
		head, err := h.c.EventLog.Latest(ctx, tx, t.Tenant, events.KindCluster, t.Cluster)
		if err != nil {
			return err
		}
		if !head.Exists() || head.ID.UUID().String() != t.ClusterID {
			return errs.New(errs.Conflict, "cluster %q was removed meanwhile", t.Cluster)
		}
		rotated := events.ClusterCredentialRotated{Credential: commitment, Replaces: was, Expires: token.Expires.UTC()}
		command, err := h.c.EventLog.FactCommand(ctx, tx, namespaceRotation,
			fmt.Sprintf("%s\x00%s\x00%d", t.Tenant, head.ID, head.Version), rotated)
		if err != nil {
			return err
		}
		_, err = h.c.EventLog.Append(ctx, tx, events.Meta{
			Tenant: t.Tenant, Source: events.Installer, Time: h.c.Now().UTC(), Command: command,
			TraceParent: telemetry.TraceParent(ctx),
		}, head.ID, t.Cluster, head.Version, rotated)
		return err
	})
	return commitment, pg.Err(err)
}
