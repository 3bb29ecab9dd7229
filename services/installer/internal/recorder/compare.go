package recorder

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/protocol"
)

const (
	// parallelGets is how many last values are read at a time.
	parallelGets = 8
	// lookEvery bounds the pause between two looks at a cluster whose digest stays another one, in reports of it: eight
	// minutes where an agent reports. A report that is refused for good is never in the digest of what is recorded.
	lookEvery = 8
)

// compare compares the digest over what the stream took of the holder's reports with that over what is recorded. Where
// they differ, the last values of this cluster are read; where these are not all there either, the executor is asked to
// write all of its reports again. It looks at the first, second, fourth digest in a row that differs, and so on.
//
// A failure is not told of: the digest comes again.
func (r *Recorder) compare(ctx context.Context, report protocol.ClusterReport) {
	of := clusterKey{report.Tenant, report.ClusterID}
	if report.Scopes == nil || report.HolderEpoch == 0 || !r.queue.rests(of) {
		return // what waits may be what is missing
	}
	have, ok, err := r.recordedSet(ctx, report)
	if err != nil || !ok {
		return
	}
	r.mu.Lock()
	if have == *report.Scopes {
		delete(r.misses, of)
		r.mu.Unlock()
		return
	}
	r.misses[of]++
	n := r.misses[of]
	r.mu.Unlock()
	if n&(n-1) != 0 && n%lookEvery != 0 {
		return
	}
	if err := r.heal(ctx, report, n > 1); err != nil {
		r.c.Log.DebugContext(ctx, "what is missing of a cluster cannot be read; it is tried again", "cluster",
			report.Cluster, "error", err)
	}
}

// recordedSet is the digest over what is recorded of the session of a report; ok is false where it is not the holder.
func (r *Recorder) recordedSet(ctx context.Context, report protocol.ClusterReport) (
	set protocol.ReportSet, ok bool, err error,
) {
	var sum []byte
	var same bool
	err = r.c.Pool.QueryRow(ctx, `select scopes_session is not distinct from session, scopes, scopes_sum
		from installer.holders where tenant = $1 and cluster_id = $2 and epoch = $3 and session = $4`,
		report.Tenant, report.ClusterID, report.HolderEpoch, report.Session).Scan(&same, &set.Count, &sum)
	if errors.Is(err, pgx.ErrNoRows) {
		return set, false, nil
	}
	if !same { // nothing is recorded of this session
		return protocol.ReportSet{}, true, pg.Err(err)
	}
	copy(set.Sum[:], sum)
	return set, true, pg.Err(err)
}

// heal reads what is missing of a cluster and, with ask, has its executor write again what the stream does not hold.
func (r *Recorder) heal(ctx context.Context, report protocol.ClusterReport, ask bool) error {
	of := clusterKey{report.Tenant, report.ClusterID}
	have, entries, err := r.recount(ctx, of, report.Session)
	if err != nil || have == *report.Scopes {
		return err
	}
	held, err := r.readMissing(ctx, of, report.Session, entries)
	if err != nil {
		return err
	}
	if ask && held != *report.Scopes {
		r.c.Log.InfoContext(ctx, "reports of a cluster are lost; its executor is asked for all of them", "cluster",
			report.Cluster, "reported", report.Scopes.Count, "held", held.Count)
		return r.c.Bus.Conn().Publish(protocol.RepeatSubject(of.tenant, of.id), nil)
	}
	return nil
}

// recount makes the digest over what is recorded of a session anew: scopes are forgotten, and an earlier release keeps
// no digest. entries are those of all reports of the cluster that are wholly recorded, by their subjects.
func (r *Recorder) recount(ctx context.Context, of clusterKey, session string) (
	set protocol.ReportSet, entries map[string]protocol.Entry, err error,
) {
	err = r.c.Pool.Tx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `select from installer.holders where tenant = $1 and cluster_id = $2 for update`,
			of.tenant, of.id); err != nil {
			return err
		}
		var err error
		if entries, err = recordedEntries(ctx, tx, of, func(by string, e protocol.Entry) {
			if by == session {
				set.Add(e)
			}
		}); err != nil {
			return err
		}
		if session == "" {
			return nil // nobody has reported of the cluster
		}
		_, err = tx.Exec(ctx, `update installer.holders set scopes_session = $4, scopes = $5, scopes_sum = $6
			where tenant = $1 and cluster_id = $2 and session = $4 and recorder_epoch = $3`,
			of.tenant, of.id, r.claimOf(of), session, set.Count, set.Sum[:])
		return err
	})
	return set, entries, pg.Err(err)
}

// recordedEntries are those of all reports of a cluster that are wholly recorded, by their subjects; each gets them
// with the session that wrote the report, and may be nil.
func recordedEntries(ctx context.Context, q pg.Querier, of clusterKey,
	each func(session string, e protocol.Entry),
) (map[string]protocol.Entry, error) {
	rows, err := q.Query(ctx, `select namespace, coalesce(session::text, ''), entry from installer.reports
		where tenant = $1 and cluster_id = $2 and entry is not null`, of.tenant, of.id)
	if err != nil {
		return nil, pg.Err(err)
	}
	entries := map[string]protocol.Entry{}
	var namespace, by string
	var entry []byte
	_, err = pgx.ForEachRow(rows, []any{&namespace, &by, &entry}, func() error {
		e := protocol.Entry(entry)
		entries[protocol.ScopeReportSubject(protocol.Scope{
			Tenant: of.tenant, ClusterID: of.id, Namespace: namespace,
		})] = e
		if each != nil {
			each(by, e)
		}
		return nil
	})
	return entries, pg.Err(err)
}

// readMissing reads the last values of a cluster's namespaces and takes those that are not among the entries: of all
// that are registered, and of as many others as the stream may hold. held is the digest over those of a session.
func (r *Recorder) readMissing(ctx context.Context, of clusterKey, session string,
	entries map[string]protocol.Entry,
) (held protocol.ReportSet, err error) {
	stream, err := r.c.Bus.Stream(ctx, protocol.StreamReports)
	if err != nil {
		return held, err
	}
	known, err := r.registered(ctx, of)
	if err != nil {
		return held, err
	}
	var mu sync.Mutex
	compare := func(ctx context.Context, subject string) error {
		m, err := lastValue(ctx, stream, subject)
		if m == nil || err != nil {
			return err
		}
		entry := protocol.EntryOf(subject, m.Data)
		if m.Session == session {
			mu.Lock()
			held.Add(entry)
			mu.Unlock()
		}
		if entries[subject] != entry {
			r.take(*m)
		}
		return nil
	}
	foreign := 0
	_, err = r.c.Bus.Subjects(ctx, protocol.StreamReports, protocol.ReportsFilter(of.tenant, of.id),
		func(page map[string]uint64) error {
			g, inner := errgroup.WithContext(ctx)
			g.SetLimit(parallelGets)
			for subject := range page {
				if subject == protocol.ClusterReportSubject(of.tenant, of.id) {
					continue
				}
				if !known[subject] {
					foreign++
				}
				if !known[subject] && foreign > r.c.Foreign {
					continue // the rest is about to be purged
				}
				g.Go(func() error { return compare(inner, subject) })
			}
			return g.Wait()
		})
	return held, err
}

// lastValue is nil where there is none.
func lastValue(ctx context.Context, stream jetstream.Stream, subject string) (*Message, error) {
	m, err := stream.GetLastMsgForSubject(ctx, subject)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, errs.Wrap(errs.Unavailable, err, "stream %s", protocol.StreamReports)
	}
	out := messageOfBus(subject, m.Header, m.Data)
	return &out, nil
}

// catchUp reads what came of a cluster while nobody recorded it: its own report and, where that has another digest than
// what is recorded, the others.
func (r *Recorder) catchUp(ctx context.Context, of clusterKey) error {
	stream, err := r.c.Bus.Stream(ctx, protocol.StreamReports)
	if err != nil {
		return err
	}
	m, err := lastValue(ctx, stream, protocol.ClusterReportSubject(of.tenant, of.id))
	if err != nil {
		return err
	}
	var report protocol.ClusterReport
	if m != nil && r.keyring.prove(ctx, *m) == nil && json.Unmarshal(m.Data, &report) == nil {
		r.take(*m)
	}
	if report.Scopes != nil && report.HolderEpoch > 0 {
		if have, ok, err := r.recordedSet(ctx, report); err != nil || ok && have == *report.Scopes {
			return err
		}
	}
	_, entries, err := r.recount(ctx, of, report.Session)
	if err != nil {
		return err
	}
	_, err = r.readMissing(ctx, of, report.Session, entries)
	return err
}
