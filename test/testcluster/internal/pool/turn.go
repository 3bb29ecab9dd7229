package pool

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	turnPoll   = 100 * time.Millisecond // clusters live for seconds
	turnReport = 10 * time.Second
)

// Turn says who wants to add a cluster.
type Turn struct {
	Name   string
	Dir    string    // empty for one in the pool
	Holder string    // a path: who is below a holder belongs to it
	Limit  int       // of holders at a time
	Log    io.Writer // is told what is waited for
}

// Take adds a cluster as soon as it is its holder's turn: at once if the holder has one already, else when fewer than
// the limit of holders have any.
func (p Pool) Take(ctx context.Context, t Turn) (*Member, error) {
	m := p.newMember(Cluster, t.Name, t.Dir)
	m.Holder = t.Holder
	poll := time.NewTicker(turnPoll)
	defer poll.Stop()
	report := time.NewTicker(turnReport)
	defer report.Stop()
	for {
		holders, err := p.tryTake(ctx, m, t.Limit)
		if err != nil {
			return nil, fmt.Errorf("wait for a turn: %w", err)
		}
		if holders == nil {
			return m, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for a turn, held by %v: %w", holders, context.Cause(ctx))
		case <-report.C:
			fmt.Fprintf(t.Log, "waiting for a turn to start cluster %s: held by %v\n", t.Name, holders)
		case <-poll.C:
		}
	}
}

// tryTake adds the member, or returns the holders that are in the way.
func (p Pool) tryTake(ctx context.Context, m *Member, limit int) (inTheWay []string, err error) {
	err = p.locked(ctx, func() error {
		alive, err := p.reap(ctx)
		if err != nil {
			return err
		}
		holders := holdersOf(alive)
		if len(holders) >= limit && !slices.ContainsFunc(holders, m.belongsTo) {
			inTheWay = holders
			return nil
		}
		return m.create()
	})
	return inTheWay, err
}

func (m *Member) belongsTo(holder string) bool {
	return m.Holder == holder || strings.HasPrefix(m.Holder, holder+"/")
}

func holdersOf(members []*Member) []string {
	var holders []string
	for _, m := range members {
		if m.Holder != "" && !slices.Contains(holders, m.Holder) {
			holders = append(holders, m.Holder)
		}
	}
	return holders
}
