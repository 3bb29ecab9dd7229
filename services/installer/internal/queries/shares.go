package queries

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/chandler-fleet/chandler/libs/digest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/rpc"
)

// A cluster that answers slowly, or never, keeps nobody waiting who asks about another one. Who has no place is told so
// at once, since waiting for one would take a place elsewhere.
const (
	// clusterQuestions are the questions to one cluster that are under way at once: what one person looks at.
	clusterQuestions = 2
	// clusterPlaces are those who wait for them: equal questions are asked once.
	clusterPlaces = 4
	// tenantPlaces are those of a tenant: eight clusters that do not answer.
	tenantPlaces = 32
	// places are all: four such tenants. Each holds a question and an answer in memory, of a few KiB as a rule.
	places = 128
)

// limits are those of questions about clusters: who waits for a cluster takes a place, not the turn of others.
var limits = rpc.Limits{Parallel: places}

// Shares are the questions to executors that are under way. Its methods may be called side by side.
type Shares struct {
	mu     sync.Mutex
	all    int
	places map[string]int // by tenant, and by tenant and cluster
	calls  map[string]*call
	asked  map[string]int // by tenant and cluster
}

// call is a question that is under way.
type call struct {
	done   chan struct{}
	answer json.RawMessage
	err    error
}

// NewShares returns one with nothing under way.
func NewShares() *Shares {
	return &Shares{places: map[string]int{}, calls: map[string]*call{}, asked: map[string]int{}}
}

// Do asks a cluster by ask, unless the same question is under way: then its answer counts. Where too many wait it is
// errs.Unavailable at once.
func (s *Shares) Do(ctx context.Context, tenant, cluster, question string, in any,
	ask func(context.Context) (json.RawMessage, error),
) (json.RawMessage, error) {
	text, err := json.Marshal(in)
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "encode a question")
	}
	at := tenant + "/" + cluster
	c, leave, err := s.enter(ctx, tenant, at, at+"/"+question+"/"+string(digest.Bytes(text)), ask)
	if err != nil {
		return nil, err
	}
	defer leave()
	select {
	case <-c.done:
		return c.answer, c.err
	case <-ctx.Done():
		return nil, errs.Wrap(errs.Unavailable, ctx.Err(), "wait for the answer")
	}
}

func (s *Shares) enter(ctx context.Context, tenant, at, key string,
	ask func(context.Context) (json.RawMessage, error),
) (*call, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, under := s.calls[key]
	switch {
	case s.all >= places:
		return nil, nil, errs.New(errs.Unavailable, "too many questions to clusters are under way")
	case s.places[tenant] >= tenantPlaces:
		return nil, nil, errs.New(errs.Unavailable, "too many questions to clusters of this tenant are under way")
	case s.places[at] >= clusterPlaces, !under && s.asked[at] >= clusterQuestions:
		return nil, nil, errs.New(errs.Unavailable, "too many questions to this cluster are under way")
	}
	s.all++
	add(s.places, tenant, 1)
	add(s.places, at, 1)
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all--
		add(s.places, tenant, -1)
		add(s.places, at, -1)
	}
	if under {
		return c, leave, nil
	}
	c = &call{done: make(chan struct{})}
	s.calls[key] = c
	add(s.asked, at, 1)
	go func() { // who asked first may leave before others who wait for the same
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), executorTimeout)
		defer cancel()
		c.answer, c.err = ask(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.calls, key)
		add(s.asked, at, -1)
		close(c.done)
	}()
	return c, leave, nil
}

// add changes a count, and keeps none of nothing.
func add(counts map[string]int, of string, n int) {
	if counts[of] += n; counts[of] == 0 {
		delete(counts, of)
	}
}
