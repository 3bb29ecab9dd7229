package executorhost

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/bus"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/keys/seal"
	"github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
	"github.com/chandler-fleet/chandler/services/installer/executor/access"
	"github.com/chandler-fleet/chandler/services/installer/placement"
)

const (
	// reconcileEvery is how often executors are reconciled with clusters; the hub's consumer also wakes it.
	reconcileEvery = 2 * time.Second
	// reportEvery is how often a kubeconfig that cannot be used is reported, as executors report.
	reportEvery = 15 * time.Second
	// restartPause is the wait before an executor that ended by itself is started again.
	restartPause = 5 * time.Second
	// publishTimeout bounds one report.
	publishTimeout = 5 * time.Second
	// releaseTimeout bounds the release of a cluster: if it cannot be reached, its administrator does it by hand.
	releaseTimeout = 20 * time.Second
)

// Target is a cluster that an executor is to serve.
type Target struct {
	Tenant    string
	Cluster   string
	ClusterID string
	REST      *rest.Config
}

// Config is what a host needs; Now and Log may be left out.
type Config struct {
	Pool     *pg.Pool
	Bus      *bus.Bus
	Identity seal.Identities
	EventLog *eventlog.Log // where a token that follows another one is recorded
	// Request asks the cluster for the next token with the present one: access.Request.
	Request func(ctx context.Context, c *rest.Config, life time.Duration) (string, clusteraccess.Token, error)
	// Execute serves a cluster until ctx ends.
	Execute func(ctx context.Context, t Target) error
	// Release releases a cluster that was removed, after Execute has ended. It may be left out.
	Release func(ctx context.Context, t Target) error
	// Register registers the session of this host, which reports kubeconfigs that cannot be used; its epoch is 0.
	Register func(ctx context.Context, h protocol.Hold) (epoch int64, err error)
	// Session signs these reports.
	Session *protocol.Session
	// Name is this replica's, unique among all that live; as in the leases of clusters.
	Name string
	// Follows is the consumer that makes the table of clusters: while it reads the log again, clusters are missing.
	Follows string
	// Capacity is the weight of clusters that this replica takes, 0 any. A cluster weighs 1 and 1 for each operator.
	Capacity int
	// Live is given the replicas that live, in each round in which the placement counts. It may be left out.
	Live func(ctx context.Context, live []placement.Replica) error
	// Recorded is how many clusters this replica records. It may be left out.
	Recorded func() int
	// Dial connects to API servers. It may be left out.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	Now  func() time.Time
	Log  *slog.Logger
}

// Host keeps executors running.
type Host struct {
	c         Config
	wake      chan struct{}
	releasing sync.WaitGroup // clusters that are being released
	renewing  sync.WaitGroup // tokens that are being followed by others
	requests  chan struct{}  // has a place for each token that is asked for at a time

	mu       sync.Mutex
	running  map[string]*hosted // by cluster id
	unusable map[string]unusable
	load     int // weight of the clusters that are this replica's
	unplaced int // clusters of the fleet without room
	moves    int // executors that were given to other replicas since that was last said
}

// hosted is one executor.
type hosted struct {
	target Target
	key    string // commitment of the kubeconfig: it stays when the same one is encrypted to another key
	cancel context.CancelFunc
	done   chan struct{}

	stream   string // of the registration
	config   kubeconfig.Config
	source   *access.Source // nil where the credential is not a token of the hub's account
	renewing bool
	tried    time.Time // when the next token was asked for last
}

// unusable is a kubeconfig that cannot be used.
type unusable struct {
	key      string // as of hosted
	reported time.Time
}

// New returns a host.
func New(c Config) *Host {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	return &Host{
		c: c, wake: make(chan struct{}, 1), running: map[string]*hosted{}, unusable: map[string]unusable{},
		requests: make(chan struct{}, requestsAtOnce),
	}
}

// Wake triggers a reconcile at once.
func (h *Host) Wake() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// Run hosts until ctx ends, then stops all executors and waits for them.
func (h *Host) Run(ctx context.Context) error {
	defer h.releasing.Wait()
	defer h.stopAll()
	defer h.renewing.Wait()
	defer h.leave(ctx) // first: others take over as soon as the leases are given back
	t := time.NewTicker(reconcileEvery)
	defer t.Stop()
	away := false
	for {
		// While the database is away, executors go on. When it is back, the others get a round to say that they live.
		err := h.round(ctx, !away)
		if err != nil && ctx.Err() == nil {
			h.c.Log.DebugContext(ctx, "cannot read the clusters; executors go on", "error", err)
		}
		away = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		case <-h.wake:
		}
	}
}

// round says that this replica lives, and with act runs what is its own.
func (h *Host) round(ctx context.Context, act bool) error {
	live, err := h.beat(ctx)
	if err != nil || !act {
		return err
	}
	var failed error
	if h.c.Live != nil { // before executors are stopped, which may take a while
		failed = h.c.Live(ctx, live)
	}
	wanted, err := h.registered(ctx)
	if err == nil {
		h.reconcile(ctx, wanted, live)
	}
	return errors.Join(failed, err)
}

// stored is a registered cluster with its kubeconfig as it is stored. ciphertext is nil where what is
// stored belongs to another registration, or to a replacement, that the hub has not seen yet.
type stored struct {
	tenant, name, id string
	stream           string // of the registration
	commitment       string
	ciphertext       []byte
	waived           []kubeconfig.Waiver // what an administrator allows this kubeconfig
	weight           int                 // 1, and 1 for each operator
}

func (h *Host) registered(ctx context.Context) ([]stored, error) {
	rows, err := h.c.Pool.Query(ctx, `select c.tenant, c.name, c.cluster_id::text, c.stream, case
		when k.commitment = c.credential then k.ciphertext end, k.commitment, c.waived,
		1 + (select count(*) from installer.csvs v where v.tenant = c.tenant and v.cluster = c.name)
		from installer.clusters c join gateway_api.cluster_credentials k on k.tenant = c.tenant and k.name = c.name
		where not c.removed order by c.tenant, c.name`)
	if err != nil {
		return nil, pg.Err(err)
	}
	list, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (s stored, err error) {
		return s, r.Scan(&s.tenant, &s.name, &s.id, &s.stream, &s.ciphertext, &s.commitment, &s.waived, &s.weight)
	})
	return list, pg.Err(err)
}

// reconcile stops what should not run as it does, and starts what should. A cluster that another replica is placed for
// is given up; that one waits for its Lease.
func (h *Host) reconcile(ctx context.Context, wanted []stored, live []placement.Replica) {
	mine, without := h.place(live, wanted)
	keep := map[string]bool{}
	var moved sync.WaitGroup
	for _, s := range wanted {
		keep[s.id] = true
		if !mine[s.id] {
			moved.Go(func() {
				if h.stop(s.id) != nil {
					h.mu.Lock()
					h.moves++
					h.mu.Unlock()
					h.c.Log.InfoContext(ctx, "the executor of a cluster moves to another replica", "cluster", s.name)
				}
			})
			if without[s.id] {
				h.reportNoRoom(ctx, s, len(live))
			}
			continue
		}
		if s.ciphertext == nil {
			continue
		}
		h.mu.Lock()
		r := h.running[s.id]
		h.mu.Unlock()
		switch {
		case r != nil && h.adopt(r, s):
			h.renew(ctx, r)
			continue
		case r != nil:
			h.c.Log.InfoContext(ctx, "the kubeconfig was replaced", "cluster", s.name)
			h.stop(s.id)
		}
		h.start(ctx, s)
	}
	moved.Wait()
	h.stopMissing(ctx, keep)
}

// release gives a cluster back that was removed. The credential is in memory only by now: what fails here is done by
// hand (docs/deploy.md), and so is what a crash keeps from being done.
func (h *Host) release(ctx context.Context, t Target) {
	if h.c.Release == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	var err error
	func() {
		defer func() {
			if r := recover(); r != nil {
				err = errs.New(errs.Internal, "panic: %v", r)
			}
		}()
		err = h.c.Release(ctx, t)
	}()
	if err != nil {
		h.c.Log.WarnContext(
			ctx, "a removed cluster keeps Chandler's admission policies: its administrator has to delete them",
			"cluster", t.Cluster, "error", err)
		return
	}
	h.c.Log.InfoContext(ctx, "a removed cluster was released", "cluster", t.Cluster)
}

func (h *Host) start(ctx context.Context, s stored) {
	config, cfg, err := decrypt(s.ciphertext, h.c.Identity, s.waived)
	if err != nil {
		h.reportUnusable(ctx, s, err)
		return
	}
	cfg.Dial = h.c.Dial
	source, ok := access.NewSource(cfg, h.c.Now)
	if ok {
		cfg = source.Config(cfg)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.unusable, s.id)
	own, cancel := context.WithCancel(ctx)
	r := &hosted{
		target: Target{Tenant: s.tenant, Cluster: s.name, ClusterID: s.id, REST: cfg}, key: s.commitment,
		cancel: cancel, done: make(chan struct{}), config: config, source: source,
		stream: s.stream,
	}
	h.running[s.id] = r
	go func() {
		defer close(r.done)
		h.superviseExecutor(own, r.target)
	}()
	h.c.Log.InfoContext(ctx, "hosting an executor", "cluster", s.name)
}

// superviseExecutor runs an executor again when it ends by itself.
func (h *Host) superviseExecutor(ctx context.Context, t Target) {
	for ctx.Err() == nil {
		err := h.execute(ctx, t)
		if ctx.Err() != nil {
			return
		}
		h.c.Log.ErrorContext(ctx, "an executor ended; starting it again", "cluster", t.Cluster, "error", err)
		timer := time.NewTimer(restartPause)
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
	}
}

// execute keeps a panic over one cluster from ending the others.
func (h *Host) execute(ctx context.Context, t Target) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Internal, "panic: %v", r)
		}
	}()
	return h.c.Execute(ctx, t)
}

// noRoom stands for the kubeconfig of a cluster that no replica has room for.
const noRoom = "no room"

// reportNoRoom reports that no replica can take a cluster.
func (h *Host) reportNoRoom(ctx context.Context, s stored, replicas int) {
	h.reportState(ctx, s, noRoom, "NoRoom", "NoCapacity", fmt.Sprintf("no replica of the installer has room for an "+
		"executor of weight %d: %d replicas are up; add one, or raise CHANDLER_EXECUTOR_CAPACITY", s.weight, replicas))
}

// reportUnusable reports a kubeconfig that cannot be used, as an executor would report what it meets.
func (h *Host) reportUnusable(ctx context.Context, s stored, err error) {
	h.reportState(ctx, s, s.commitment, "Unauthorized", "CredentialUnusable", err.Error())
}

// reportState reports why no executor runs for a cluster, again every so often; at once where that is another
// kubeconfig or another reason.
func (h *Host) reportState(ctx context.Context, s stored, key, state, reason, message string) {
	h.mu.Lock()
	last, again := h.unusable[s.id]
	again = again && last.key == key
	if again && h.c.Now().Sub(last.reported) < reportEvery {
		h.mu.Unlock()
		return
	}
	h.unusable[s.id] = unusable{key: key, reported: h.c.Now()}
	h.mu.Unlock()
	if !again {
		h.c.Log.ErrorContext(ctx, "no executor runs for a cluster", "cluster", s.name, "reason", reason, "message",
			message)
	}
	if err := h.report(ctx, protocol.ClusterReport{
		Tenant: s.tenant, Cluster: s.name, ClusterID: s.id, State: state, Reason: reason,
		Message: message, Reported: h.c.Now().UTC(), Session: h.c.Session.ID(), Sequence: h.c.Session.Next(),
	}); err != nil {
		h.c.Log.DebugContext(ctx, "cannot report; it will be repeated", "cluster", s.name, "error", err)
	}
}

// report registers the host's session for a cluster, and publishes what the host says of it. Both may be repeated.
func (h *Host) report(ctx context.Context, r protocol.ClusterReport) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if _, err := h.c.Register(ctx, protocol.Hold{
		Tenant: r.Tenant, ClusterID: r.ClusterID, Session: r.Session, Holder: "host",
		PublicKey: h.c.Session.PublicKey(),
	}); err != nil {
		return err
	}
	body, err := json.Marshal(r)
	if err != nil {
		return errs.Wrap(errs.Internal, err, "encode a report")
	}
	m := nats.NewMsg(protocol.ClusterReportSubject(r.Tenant, r.ClusterID))
	m.Data = body
	m.Header.Set(protocol.HeaderSession, r.Session)
	m.Header.Set(protocol.HeaderReportSignature, h.c.Session.SignReport(m.Subject, body))
	_, err = h.c.Bus.JetStream().PublishMsg(ctx, m)
	return err
}

// stop ends an executor and returns it; nil where none ran.
func (h *Host) stop(id string) *hosted {
	h.mu.Lock()
	r := h.running[id]
	delete(h.running, id)
	h.mu.Unlock()
	if r != nil {
		r.cancel()
		<-r.done
	}
	return r
}

func (h *Host) stopAll() {
	h.mu.Lock()
	all := make([]*hosted, 0, len(h.running))
	for _, r := range h.running {
		all = append(all, r)
		r.cancel()
	}
	clear(h.running)
	h.mu.Unlock()
	for _, r := range all {
		<-r.done
	}
}
