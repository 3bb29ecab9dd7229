package executor

import (
	"context"
	"crypto/ed25519"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/internal/pace"
	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// Holds registers holds with the hub. The result is the epoch that the cluster has then: a higher one than the hold's
// says that the hold was not registered.
type Holds interface {
	Register(ctx context.Context, h protocol.Hold) (epoch int64, err error)
}

// registerAgain is how often a session is registered again: a database that was restored from a backup may have lost
// it, and reports of a session that is not registered count for nothing.
const registerAgain = time.Minute

// NewSession returns a session with a key that is nowhere else.
func NewSession() (*protocol.Session, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "make the key of a session")
	}
	return protocol.NewSession(uuid.NewString(), key), nil
}

// register registers the session, and the epoch in which it holds the cluster, 0 for none.
func (e *Executor) register(ctx context.Context, epoch int64, restored bool) (int64, error) {
	return e.cfg.Holds.Register(ctx, protocol.Hold{
		Tenant: e.cfg.Tenant, ClusterID: e.cfg.ClusterID, Epoch: epoch, Holder: e.cfg.Holder, Session: e.session.ID(),
		PublicKey: e.session.PublicKey(), Restored: restored,
	})
}

// registerHold registers the epoch of the lease that was taken, and returns the epoch that is registered; 0 where
// somebody else holds the lease by now. Nothing is reported or changed in an epoch before.
//
// A hub that knows a higher epoch than the lease has means one of two things. Another executor took the lease since:
// then the lease is not ours any more. Or it is still ours: then the cluster was restored from a backup, with its lease
// and its fence, and goes on above what the hub knows. Epochs never go back, so nobody waits to be believed again.
func (e *Executor) registerHold(ctx context.Context, lease *kube.Lease, epoch int64) (int64, error) {
	known, err := e.register(ctx, epoch, false)
	if err != nil || known <= epoch {
		return epoch, err
	}
	if epoch, err = lease.Raise(ctx, known); err != nil || epoch == 0 {
		return 0, err
	}
	e.cfg.Log.WarnContext(ctx, "the epochs of the cluster went back, as after a restore from a backup: they go on above "+
		"what the hub knows", "known", known, "epoch", epoch)
	if known, err = e.register(ctx, epoch, true); err != nil {
		return 0, err
	}
	if known > epoch {
		return 0, errs.New(errs.Conflict, "epoch %d was overtaken by epoch %d", epoch, known)
	}
	return epoch, nil
}

// keepRegistered registers the session at the start, and again and again.
func (e *Executor) keepRegistered(ctx context.Context) {
	wait := e.cfg.Timing.Backoff
	for ctx.Err() == nil {
		epoch := e.held.Load()
		_, err := e.register(ctx, epoch, false)
		if err != nil && ctx.Err() == nil {
			e.cfg.Log.DebugContext(ctx, "the session cannot be registered; trying again", "error", err, "wait", wait)
			pace.Sleep(ctx, wait)
			wait = min(2*wait, e.cfg.Timing.Longest)
			continue
		}
		wait = e.cfg.Timing.Backoff
		pace.Sleep(ctx, registerAgain)
	}
}
