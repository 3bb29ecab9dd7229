// Package dev runs all of Chandler in one process: the four services, an embedded NATS and a
// private Postgres. It is what a newcomer and many tests use; nothing in it is a stand-in.
//
// Everything lives in one state folder, which one process at a time may use: secrets made at the
// first start, Postgres' data and JetStream's. JetStream's may be lost at any time.
package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/chandler-fleet/chandler/cmd/chandler/keys"
	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
)

const (
	// readyEvery is how often a starting service is asked whether it is ready.
	readyEvery = 50 * time.Millisecond
	// readyWithin bounds the start: seconds on an idle machine, more where tests fill it.
	readyWithin = 2 * time.Minute
)

// Options say what to run.
type Options struct {
	State    string // folder for data; "" takes a temporary one, which Run removes
	Listen   string // address of the API; port 0 takes a free one
	LogLevel string
	Log      io.Writer
	Version  string
	Drain    time.Duration
	// Ready is called once everything serves; an error stops everything.
	Ready func(Running) error
	// Env are further settings of the services, by variable name.
	Env map[string]string
}

// Running is what a client needs to know.
type Running struct {
	URL         string
	Token       string
	DatabaseURL string // of the administrator
	NATSURL     string
	NATSSeed    string // of the administrator on NATS
}

// Run runs everything until ctx ends or a part fails.
func Run(ctx context.Context, o Options) (err error) {
	release, err := o.openState()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	secret, err := loadKeys(filepath.Join(o.State, "secrets.json"))
	if err != nil {
		return err
	}
	tel, err := telemetry.Start(ctx, telemetry.Options{
		Service: "chandler-dev", Version: o.Version,
		LogLevel: o.LogLevel, LogFormat: "text", LogTo: o.Log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tel.Shutdown(context.WithoutCancel(ctx))) }()

	database, err := pglocal.Start(ctx, pglocal.Options{
		Dir: filepath.Join(o.State, "postgres"), Durable: true,
		Log: tel.Log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, database.Stop()) }()
	if err := migrate.Up(ctx, database.AdminURL(), migrate.Options{Log: tel.Log}); err != nil {
		return err
	}
	users, err := secret.NATS.Users()
	if err != nil {
		return err
	}
	nats, err := natslocal.Start(ctx, natslocal.Options{
		Dir: filepath.Join(o.State, "nats"), Config: natsauth.Config(users), Log: tel.Log,
	})
	if err != nil {
		return err
	}
	defer nats.Stop()

	s := &stack{o: o, tel: tel, keys: secret, database: database, nats: nats}
	if err := s.takeAddresses(ctx); err != nil {
		return err
	}
	return s.run(ctx)
}

// openState makes and locks the state folder. The returned function gives it free, and removes a temporary one.
func (o *Options) openState() (release func() error, err error) {
	temporary := o.State == ""
	if temporary {
		if o.State, err = os.MkdirTemp("", "chandler-dev-"); err != nil {
			return nil, err
		}
	}
	if o.State, err = filepath.Abs(o.State); err != nil {
		return nil, err
	}
	// Postgres may run as another account, which must be able to enter.
	if err := os.MkdirAll(o.State, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lock(filepath.Join(o.State, "lock"))
	if err != nil {
		return nil, err
	}
	return func() error {
		err := unlock()
		if temporary {
			err = errors.Join(err, os.RemoveAll(o.State))
		}
		return err
	}, nil
}

type stack struct {
	o        Options
	tel      *telemetry.Telemetry
	keys     keys.Keys
	database *pglocal.Server
	nats     *natslocal.Server
	api      string            // address
	ops      map[string]string // addresses by service
}

// takeAddresses chooses ports at once, so that they differ and are known before the services listen.
func (s *stack) takeAddresses(ctx context.Context) error {
	s.ops = map[string]string{}
	var held []net.Listener
	defer func() {
		for _, ln := range held {
			_ = ln.Close() // nothing was sent or received
		}
	}()
	take := func(addr string) (string, error) {
		var lc net.ListenConfig
		ln, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			return "", fmt.Errorf("cannot listen on %s: %w", addr, err)
		}
		held = append(held, ln)
		return ln.Addr().String(), nil
	}
	var err error
	if s.api, err = take(s.o.Listen); err != nil {
		return err
	}
	for _, p := range programs() {
		if s.ops[p.name], err = take("127.0.0.1:0"); err != nil {
			return err
		}
	}
	return nil
}

func (s *stack) run(ctx context.Context) error {
	g := service.Group{Drain: s.o.Drain, Log: s.tel.Log}
	for _, p := range programs() {
		run, err := p.start(ctx, s.env(p.name), s.tel)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		g.Add(p.name, run)
	}
	g.Add("ready", func(ctx context.Context) error {
		if err := s.awaitReady(ctx); err != nil || s.o.Ready == nil {
			return err
		}
		return s.o.Ready(Running{
			URL: "http://" + s.api, Token: s.keys.Token, DatabaseURL: s.database.AdminURL(),
			NATSURL: s.nats.URL(), NATSSeed: s.keys.NATS.Admin,
		})
	})
	return g.Run(ctx)
}

// env holds the settings of one service, as its environment would.
func (s *stack) env(name string) service.LookupEnv {
	values := map[string]string{
		"CHANDLER_DATABASE_URL":   s.database.RoleURL(migrate.Role(events.Writer(name))),
		"CHANDLER_NATS_URL":       s.nats.URL(),
		"CHANDLER_NATS_NKEY_SEED": s.keys.NATS.Seed(name),
		"CHANDLER_OPS_LISTEN":     s.ops[name],
		"CHANDLER_DRAIN":          s.o.Drain.String(),
	}
	for _, v := range s.keys.OfBodies(name) {
		values[v.Name] = v.Value
	}
	switch name {
	case "gateway":
		values["CHANDLER_LISTEN"] = s.api
		values["CHANDLER_REQUESTS_DATABASE_URL"] = s.database.RoleURL(migrate.GatewayRequests)
		values["CHANDLER_ADMIN_TOKEN"] = s.keys.Token
		values["CHANDLER_CREDENTIALS_RECIPIENT"] = s.keys.Recipient
		values["CHANDLER_CATALOG_CREDENTIALS_RECIPIENT"] = s.keys.CatalogRecipient
		values["CHANDLER_HOOK_KEY"] = s.keys.HookKey
	case "catalog-indexer":
		values["CHANDLER_CATALOG_CREDENTIALS_IDENTITY"] = s.keys.CatalogIdentity
	case "installer":
		values["CHANDLER_CREDENTIALS_IDENTITY"] = s.keys.Identity
		values["CHANDLER_GRANT_KEY"] = s.keys.GrantKey
	}
	maps.Copy(values, s.o.Env)
	return func(k string) (string, bool) { v, ok := values[k]; return v, ok }
}

// awaitReady asks every service until it says that it is ready.
func (s *stack) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	tick := time.NewTicker(readyEvery)
	defer tick.Stop()
	for _, p := range programs() {
		for {
			err := ready(ctx, "http://"+s.ops[p.name]+"/readyz")
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not ready: %w", p.name, err)
			case <-tick.C:
			}
		}
	}
	return nil
}

func ready(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	const most = 4 << 10
	body, err := io.ReadAll(io.LimitReader(res.Body, most))
	err = errors.Join(err, res.Body.Close())
	if err == nil && res.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", res.Status, body)
	}
	return err
}
