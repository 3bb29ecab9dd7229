package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/uuid"
)

// How often the gateway is killed, and how many clients ask it all the time.
const (
	gatewayKills      = 1_000
	gatewayKillsBrief = 10 // in make test
	keyedClients      = 8
	// lifeAfterAnswer is the longest time between the first answer of a gateway and its end: some are killed while they
	// start to work, some under full load.
	lifeAfterAnswer = 60 * time.Millisecond
)

// keyed are clients that send every request with a key until it is answered.
type keyed struct {
	w        *world
	prefix   string
	asked    atomic.Int64 // requests that are acknowledged
	repeated atomic.Int64 // tries without an answer that counts
	broken   atomic.Int64 // connections that ended between request and answer
}

// onceForEachKey kills the gateway again and again in the middle of requests. Their clients repeat them with the same
// key: each makes one token, which has no name of its own, so that one that is made twice is there twice.
func (w *world) onceForEachKey() {
	w.t.Helper()
	kills := gatewayKillsBrief
	if thorough {
		kills = gatewayKills
	}
	k := &keyed{w: w, prefix: "killed-" + uuid.NewString()[:8]}
	ctx, stop := context.WithCancel(w.ctx)
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	for i := range keyedClients {
		asking.Go(func() { k.ask(ctx, i) })
	}
	for range kills {
		before := k.asked.Load()
		w.eventually("the gateway answers", func() (string, bool) {
			n := k.asked.Load()
			return fmt.Sprint(n, " answers"), n > before
		})
		w.pause(rand.N(lifeAfterAnswer))
		w.restart("gateway")
	}
	w.must(w.Stack.Ready(w.ctx, "gateway"))
	stop()
	asking.Wait()
	var made int64
	w.must(w.database().QueryRow(w.ctx, `select count(*) from gateway.tokens where name like $1 || '%'`, k.prefix).
		Scan(&made))
	w.t.Logf("killed %d times: %d requests, repeated %d times, %d connections broken before the answer", kills,
		k.asked.Load(), k.repeated.Load(), k.broken.Load())
	if made != k.asked.Load() {
		w.t.Errorf("%d acknowledged intents made %d tokens", k.asked.Load(), made)
	}
	if k.broken.Load() == 0 {
		w.t.Error("no request was broken: nothing was tested")
	}
}

// ask sends one request after the other until ctx ends; the last one is answered as well.
func (k *keyed) ask(ctx context.Context, client int) {
	for i := 0; ctx.Err() == nil && k.w.ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s-%d-%d", k.prefix, client, i)
		for {
			err := k.once(name)
			if err == nil {
				k.asked.Add(1)
				break
			}
			if k.w.ctx.Err() != nil {
				return
			}
			if refused, ok := errors.AsType[statusError](err); ok && !refused.again() {
				k.w.t.Errorf("%s: %v", name, err)
				return
			}
			k.repeated.Add(1)
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
				k.broken.Add(1)
			}
			if _, dialed := errors.AsType[*net.OpError](err); dialed {
				k.w.pause(20 * time.Millisecond) // nobody listens
			}
		}
	}
}

// statusError is an answer that is not a success.
type statusError struct {
	status int
	body   string
}

func (e statusError) Error() string { return fmt.Sprint(e.status, " ", e.body) }

// again is whether the same request may be answered later: it is in flight, there are too many, or a part is away.
func (e statusError) again() bool {
	return e.status == http.StatusConflict || e.status == http.StatusTooManyRequests ||
		e.status >= http.StatusInternalServerError
}

func (k *keyed) once(name string) error {
	body, err := json.Marshal(map[string]any{"name": name, "role": "viewer"})
	if err != nil {
		return err
	}
	address := k.w.Stack.URL() + "/api/v1/tokens"
	req, err := http.NewRequestWithContext(k.w.ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	// The client of Go repeats a request with this header by itself when a connection that it kept is closed; what is
	// broken shall be seen here.
	req.GetBody = nil
	req.Header.Set("Authorization", "Bearer "+k.w.Client.Token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // read whole below
	said, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusCreated {
		return statusError{resp.StatusCode, strings.TrimSpace(string(said))}
	}
	return nil
}
