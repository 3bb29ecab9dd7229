package e2e

import (
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/tunneltest"
	"github.com/chandler-fleet/chandler/test/stack"
)

// TestFaultsOfTheNetwork makes black holes between the services and what they talk to, while portals write: everything
// that is sent is acknowledged and lost, and nothing is closed. DESIGN D1, D4.
func TestFaultsOfTheNetwork(t *testing.T) {
	t.Parallel()
	var led leading
	w := startStack(t, stack.Options{Env: led.env})
	record, _ := tunneltest.Database(t, w.Postgres().RoleURL(migrate.Role(events.Gateway)))
	at, err := url.Parse(w.NATSURL())
	w.must(err)
	nats := tunneltest.New(t, "tcp", at.Host)
	led.through(func(service string) []string {
		env := []string{
			"CHANDLER_DATABASE_URL=" + record.Through(t, w.Postgres().RoleURL(migrate.Role(events.Writer(service)))),
			"CHANDLER_NATS_URL=nats://" + nats.Address(),
		}
		if service == string(events.Gateway) {
			env = append(env, "CHANDLER_REQUESTS_DATABASE_URL="+
				record.Through(t, w.Postgres().RoleURL(migrate.GatewayRequests)))
		}
		return env
	})
	for _, name := range stack.Services {
		w.restart(name)
	}
	w.readyAgain()
	w.register()
	w.tried([]fault{
		{name: "a black hole before PostgreSQL", long: true, do: func(w *world) { w.hole(record) }},
		{name: "a black hole before NATS", do: func(w *world) { w.hole(nats) }},
	})
}

// hole lasts, and begins again with the connections that were made after it.
func (w *world) hole(tunnel *tunneltest.Tunnel) {
	w.repeatedly(2*time.Minute, 5*time.Second, func() {
		tunnel.Swallow()
		w.during(time.Minute)
		tunnel.Heal()
	})
}

// leading is environment of services that is known once they run.
type leading struct {
	mu  sync.Mutex
	set func(service string) []string
}

func (l *leading) through(set func(service string) []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set = set
}

func (l *leading) env(service string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.set == nil {
		return nil
	}
	return l.set(service)
}
