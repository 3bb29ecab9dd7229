package recorder

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// maxForeign bounds the subjects of a cluster in REPORTS beyond those of registered namespaces. An honest executor
	// reports of namespaces that the hub has forgotten, too: after a backup was restored these may be all of a cluster
	// with more than 10,000.
	maxForeign = 20_000
	// lookPart is the part of that bound after how many messages of a cluster its subjects are counted: a flood is seen
	// before it has written the bound a second time.
	lookPart = 2
	// lookAtLatest is when they are counted in any case: messages get lost where many come.
	lookAtLatest = 10 * time.Minute
	// lookPause is the least between two counts of a cluster: on a busy machine 200,000 subjects took 7 s to count, and
	// 3 s to purge.
	lookPause = 5 * time.Second
	// shedTimeout bounds a count with its purge: a flood of some millions. What the server has begun it finishes.
	shedTimeout = 2 * time.Minute
	// floodTold is for how long people are told of a purge once there are no more subjects than may be.
	floodTold = time.Hour
)

// kindReports is the kind of installer.messages about the reports of a cluster as a whole.
const kindReports = "cluster-reports"

// purged counts the subjects that were purged because a cluster had too many.
var purged = counter("chandler.reports.purged", "subjects of REPORTS that were purged because a cluster had too many")

// came notes a message of a cluster, and has its subjects counted when it is time for that; false where the cluster is
// another recorder's.
func (r *Recorder) came(of clusterKey) bool {
	now := time.Now()
	r.mu.Lock()
	c := r.claims[of]
	look := false
	if c != nil {
		c.unseen++
		since := now.Sub(c.looked)
		if look = since > lookAtLatest || c.unseen > r.c.Foreign/lookPart && since > lookPause; look {
			c.looked, c.unseen = now, 0
		}
	}
	r.mu.Unlock()
	if look && r.c.Bus != nil {
		r.queue.put(item{Message: Message{Subject: protocol.ClusterReportSubject(of.tenant, of.id)}, shed: true})
	}
	return c != nil
}

// registered are the subjects of a cluster that may be there, whoever writes: those of namespaces that the hub has
// published to or of which something is recorded, whose number is bounded (maxStrangers), and the cluster's own.
func (r *Recorder) registered(ctx context.Context, of clusterKey) (map[string]bool, error) {
	rows, err := r.c.Pool.Query(ctx, `select namespace from installer.published where tenant = $1 and cluster_id = $2
		union select namespace from installer.reports where tenant = $1 and cluster_id = $2`, of.tenant, of.id)
	if err != nil {
		return nil, pg.Err(err)
	}
	known := map[string]bool{protocol.ClusterReportSubject(of.tenant, of.id): true}
	var namespace string
	_, err = pgx.ForEachRow(rows, []any{&namespace}, func() error {
		known[protocol.ScopeReportSubject(protocol.Scope{
			Tenant: of.tenant, ClusterID: of.id, Namespace: namespace,
		})] = true
		return nil
	})
	return known, pg.Err(err)
}

// shed counts the subjects of a cluster that are not registered. Where they are more than may be, somebody with the
// credentials of the cluster makes up namespaces: then all that the stream holds of this cluster is purged, by one
// request. One request for each subject would be slower than who writes.
//
// Nothing is lost by that. What is registered and not wholly recorded is written again first, behind what is purged;
// what is recorded is in the record. A process that is killed between two steps leaves a stream from which nothing of
// that is missing, and the next look begins again. Only a stream that is full takes these values after the purge: where
// the process is killed just then, they show in the digest of the next heartbeat, and the executor is asked for them.
func (r *Recorder) shed(ctx context.Context, of clusterKey) error {
	ctx, cancel := context.WithTimeout(ctx, shedTimeout)
	defer cancel()
	known, err := r.registered(ctx, of)
	if err != nil {
		return err
	}
	foreign, filter := 0, protocol.ReportsFilter(of.tenant, of.id)
	last, err := r.c.Bus.Subjects(ctx, protocol.StreamReports, filter, func(page map[string]uint64) error {
		for subject := range page {
			if !known[subject] {
				foreign++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if foreign <= r.c.Foreign {
		_, err := r.c.Pool.Exec(ctx, `delete from installer.messages m using installer.clusters c
			where c.tenant = $1 and c.cluster_id = $2 and m.tenant = $1 and m.subject = c.name and m.kind = $3
			  and m.updated < now() - $4::interval`, of.tenant, of.id, kindReports, floodTold)
		return pg.Err(err)
	}
	if err := r.tellFlood(ctx, of, foreign); err != nil {
		return err
	}
	stream, err := r.c.Bus.Stream(ctx, protocol.StreamReports)
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "stream %s", protocol.StreamReports)
	}
	unrecorded, err := r.unrecorded(ctx, of, stream, known, last)
	if err != nil {
		return err
	}
	left, err := r.writeAgain(ctx, unrecorded)
	if err != nil {
		return err
	}
	err = stream.Purge(ctx, jetstream.WithPurgeSubject(filter), jetstream.WithPurgeSequence(last+1))
	if err != nil {
		return errs.Wrap(errs.Unavailable, err, "purge the reports of cluster %s", of.id)
	}
	purged.Add(ctx, int64(foreign))
	for i := range left { // the stream was full: now it is not
		left[i].Sequence = 0
	}
	_, err = r.writeAgain(ctx, left)
	return err
}

// tellFlood tells people of what is about to be purged: before it is, so that it is told in any case.
func (r *Recorder) tellFlood(ctx context.Context, of clusterKey, foreign int) error {
	r.c.Log.WarnContext(ctx, "a cluster has reports of too many namespaces that nobody registered; its subjects are purged",
		"tenant", of.tenant, "cluster_id", of.id, "subjects", foreign, "limit", r.c.Foreign)
	return pg.Err(r.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		var name string
		err := tx.QueryRow(ctx, `select name from installer.clusters where tenant = $1 and cluster_id = $2 and not removed`,
			of.tenant, of.id).Scan(&name)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		return saveMessage(ctx, tx, of.tenant, kindReports, name, fmt.Sprintf("reports of %d namespaces that nobody "+
			"registered were purged from NATS at %s, where %d may be: somebody makes them up with the NATS credentials "+
			"of this cluster; give its agent others (chandler keys agent)",
			foreign, r.c.Now().UTC().Format(time.RFC3339), r.c.Foreign))
	}))
}

// unrecorded are the last values of registered subjects that are not wholly recorded and have a sequence up to last.
func (r *Recorder) unrecorded(ctx context.Context, of clusterKey, stream jetstream.Stream, known map[string]bool,
	last uint64,
) (values []*jetstream.RawStreamMsg, err error) {
	entries, err := recordedEntries(ctx, r.c.Pool, of, nil)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelGets)
	for subject := range known {
		g.Go(func() error {
			m, err := stream.GetLastMsgForSubject(ctx, subject)
			switch {
			case errors.Is(err, jetstream.ErrMsgNotFound):
				return nil
			case err != nil:
				return errs.Wrap(errs.Unavailable, err, "stream %s", protocol.StreamReports)
			case m.Sequence > last || entries[subject] == protocol.EntryOf(subject, m.Data):
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			values = append(values, m)
			return nil
		})
	}
	return values, g.Wait()
}

// writeAgain writes values once more, where they are still the last of their subjects (of sequence 0: where there is
// none). A value that was replaced in that moment is left alone: what replaced it came later. left are those that the
// stream does not take.
func (r *Recorder) writeAgain(ctx context.Context, values []*jetstream.RawStreamMsg) (
	left []*jetstream.RawStreamMsg, err error,
) {
	for _, m := range values {
		again := nats.NewMsg(m.Subject)
		again.Data = m.Data
		for _, name := range []string{protocol.HeaderSession, protocol.HeaderReportSignature} {
			if value := m.Header.Get(name); value != "" {
				again.Header.Set(name, value)
			}
		}
		_, err := r.c.Bus.JetStream().PublishMsg(ctx, again, jetstream.WithExpectLastSequencePerSubject(m.Sequence))
		var api *jetstream.APIError
		switch {
		case err == nil:
		case !errors.As(err, &api):
			return nil, errs.Wrap(errs.Unavailable, err, "stream %s", protocol.StreamReports)
		case api.ErrorCode != jetstream.JSErrCodeStreamWrongLastSequence:
			left = append(left, m)
		}
	}
	return left, nil
}
