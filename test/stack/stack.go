package stack

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bodies"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/migrate"
	"github.com/chandler-fleet/chandler/libs/natsauth"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/natsjwt"
	"github.com/chandler-fleet/chandler/libs/pg/pglocal"
	"github.com/chandler-fleet/chandler/test/internal/proc"
)

// natsServer is the name of the bus's program and part.
const natsServer = "nats-server"

// startTimeout bounds a start once the programs are there: everything together takes three seconds on two idle cores,
// and fault tests start stacks beside Kubernetes control planes.
const startTimeout = 2 * time.Minute

// readyEvery is how often a service is asked whether it is ready.
const readyEvery = 20 * time.Millisecond

// Options say what to start.
type Options struct {
	Dir      string                // holds data, logs and binaries; made if absent
	Bin      string                // folder with the binaries of Build; "" builds into Dir/bin
	Like     string                // data directory of MigratedPostgres; "" makes and migrates a new one
	Durable  bool                  // fsync on, as in production
	Settings []string              // further settings of PostgreSQL, as NAME=VALUE
	Listen   string                // address of the API; "" takes a free port
	Token    string                // of the administrator; "" makes one
	Tell     func(line string)     // takes a line for each step; nil: nothing
	Env      func(string) []string // further environment of a service; nil: none
	// Operator has NATS in operator mode, where agents join by tokens. Without it users stand in its configuration.
	Operator bool

	bound time.Duration // of the start; default startTimeout
}

// Stack is a running Chandler.
type Stack struct {
	opts     Options
	secrets  secrets
	postgres *pglocal.Server
	natsPort int
	api      string            // address
	apis     map[string]string // addresses of further gateways
	ops      map[string]string
	running  map[string]*proc.Process
	agents   []natsauth.User       // of clusters that agents serve; none in operator mode, where they join
	operator *natsjwt.Installation // nil: NATS is not in operator mode
}

// Start brings everything up and returns when every service is ready. ctx bounds the start only; what has to be
// compiled before has no other bound.
func Start(ctx context.Context, opts Options) (*Stack, error) {
	if opts.Tell == nil {
		opts.Tell = func(string) {}
	}
	if opts.bound == 0 {
		opts.bound = startTimeout
	}
	s := &Stack{
		opts: opts, ops: map[string]string{}, apis: map[string]string{}, running: map[string]*proc.Process{},
	}
	if opts.Bin == "" {
		s.opts.Bin = s.file("bin")
		if err := Build(ctx, s.opts.Bin); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, opts.bound, fmt.Errorf("not ready within %s", opts.bound))
	defer cancel()
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		s.prepare, s.StartPostgres, s.migrate, s.StartNATS, s.startServices,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) prepare(context.Context) (err error) {
	if s.secrets, err = newSecrets(); err != nil {
		return err
	}
	if s.opts.Operator {
		if s.operator, err = newOperator(s.file("nats-accounts")); err != nil {
			return err
		}
	}
	if s.opts.Token != "" {
		s.secrets.token = s.opts.Token
	}
	for _, sub := range []string{"logs", "nats"} {
		if err := os.MkdirAll(s.file(sub), 0o755); err != nil {
			return err
		}
	}
	return s.takePorts()
}

// takePorts chooses every address once, so that a part that is started again is found where it was.
func (s *Stack) takePorts() error {
	ports, err := freePorts(2*len(Services) + 3)
	if err != nil {
		return err
	}
	s.natsPort = ports[0]
	s.api = s.opts.Listen
	if s.api == "" {
		s.api = fmt.Sprintf("127.0.0.1:%d", ports[1])
	}
	for i, name := range Services {
		s.ops[name] = fmt.Sprintf("127.0.0.1:%d", ports[2*i+3])
		s.ops[Second(name)] = fmt.Sprintf("127.0.0.1:%d", ports[2*i+4])
	}
	s.apis[Second("gateway")] = fmt.Sprintf("127.0.0.1:%d", ports[2])
	return nil
}

// freePorts holds all of them before it lets any go, so that they differ.
func freePorts(n int) ([]int, error) {
	if n == 0 {
		return nil, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close() //nolint:errcheck // nothing was sent or received
	ports, err := freePorts(n - 1)
	return append(ports, l.Addr().(*net.TCPAddr).Port), err
}

// StartPostgres starts Postgres with its old data.
func (s *Stack) StartPostgres(ctx context.Context) (err error) {
	s.opts.Tell("starting Postgres")
	s.postgres, err = pglocal.Start(ctx, pglocal.Options{
		Dir: s.file("postgres"), Like: s.opts.Like, Durable: s.opts.Durable,
		Settings: s.opts.Settings, Log: slog.New(slog.DiscardHandler),
	})
	return err
}

// MigratedPostgres makes a database in dir that nobody has used, for several stacks to begin with a copy of it. Making
// and migrating one takes as much as everything else of a start. It returns where the data is.
func MigratedPostgres(ctx context.Context, dir string) (like string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	server, err := pglocal.Start(ctx, pglocal.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return "", err
	}
	err = migrate.Up(ctx, server.AdminURL(), migrate.Options{})
	return server.DataDir(), errors.Join(err, server.Stop())
}

func (s *Stack) migrate(ctx context.Context) error {
	s.opts.Tell("migrating the database")
	return migrate.Up(ctx, s.postgres.AdminURL(), migrate.Options{})
}

// StartNATS starts nats-server on its old port with its old data.
func (s *Stack) StartNATS(ctx context.Context) error {
	s.opts.Tell("starting NATS")
	if err := s.writeUsers(); err != nil {
		return err
	}
	args := []string{
		"--config", s.file(natsUsers), "--addr", "127.0.0.1", "--port", fmt.Sprint(s.natsPort), "--jetstream",
		"--store_dir", s.file("nats"),
	}
	if err := s.run(natsServer, filepath.Join(s.opts.Bin, natsServer), args, os.Environ()); err != nil {
		return err
	}
	return s.await(ctx, natsServer, func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", s.natsPort))
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// Test is a user of NATS that may do everything: a test that does harm.
const Test = "test"

// tester is the user Test.
func tester() natsauth.User { return natsauth.User{Name: Test, Permissions: natsauth.Everything()} }

// natsUsers is the server's configuration, with who may do what.
const natsUsers = "nats-users.conf"

// writeUsers writes who may do what on NATS, as `chandler keys nats` does.
func (s *Stack) writeUsers() error {
	if s.operator != nil {
		return os.WriteFile(s.file(natsUsers), []byte(s.operator.Config), 0o644)
	}
	users := append(natsauth.ServiceUsers(), tester())
	for i := range users {
		public, err := natsconn.PublicKey(s.secrets.nats[users[i].Name])
		if err != nil {
			return err
		}
		users[i].NKey = public
	}
	return os.WriteFile(s.file(natsUsers), []byte(natsauth.Config(append(users, s.agents...))), 0o644)
}

// Processes are the pids of the parts that run, by name; Postgres is the one that started its others.
func (s *Stack) Processes() map[string]int {
	pids := map[string]int{}
	for name, p := range s.running {
		if p.ID().Alive() {
			pids[name] = p.ID().PID
		}
	}
	return pids
}

// ConnectNATS connects to NATS as a user of libs/natsauth.
func (s *Stack) ConnectNATS(user string) (*nats.Conn, error) {
	access := s.identity(user)
	options, err := access.Options()
	if err != nil {
		return nil, err
	}
	return nats.Connect(s.NATSURL(), append(options, nats.CustomInboxPrefix(natsauth.Inbox(user)))...)
}

// identity is who a user of libs/natsauth is to NATS.
func (s *Stack) identity(user string) natsconn.Settings {
	if s.operator != nil {
		return natsconn.Settings{Credentials: s.operator.Creds[user]}
	}
	return natsconn.Settings{NKeySeed: s.secrets.nats[user]}
}

func (s *Stack) startServices(ctx context.Context) error {
	for _, name := range Services {
		s.opts.Tell("starting " + name)
		if err := s.Launch(name); err != nil {
			return err
		}
	}
	for _, name := range Services {
		if err := s.Ready(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// second ends the name of the second process of a service.
const second = "-2"

// Second names the second process of a service. It is not started with the others; Launch starts it.
func Second(service string) string { return service + second }

// OpsAddress is where a part answers questions about itself; an installer is named after it.
func (s *Stack) OpsAddress(name string) string { return s.ops[name] }

// Launch starts a service that does not run, or the second process of one, without waiting for it.
func (s *Stack) Launch(name string) error {
	path, env := s.Command(name)
	return s.run(name, path, nil, env)
}

// Command is the program and the environment of a service.
func (s *Stack) Command(name string) (path string, env []string) {
	return filepath.Join(s.opts.Bin, strings.TrimSuffix(name, second)), s.env(name)
}

// Suspend stops a part without ending it: its connections stay open and nothing answers.
func (s *Stack) Suspend(name string) error { return s.running[name].Suspend() }

// Continue lets a suspended part run on.
func (s *Stack) Continue(name string) error { return s.running[name].Continue() }

// Ready waits until the service says that it is ready.
func (s *Stack) Ready(ctx context.Context, name string) error {
	return s.await(ctx, name, func(ctx context.Context) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.ops[name]+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // read whole below
		body, err := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", resp.Status, body)
		}
		return err
	})
}

func (s *Stack) env(name string) []string {
	service := strings.TrimSuffix(name, second)
	env := append(os.Environ(),
		"CHANDLER_DATABASE_URL="+s.postgres.RoleURL(migrate.Role(events.Writer(service))),
		"CHANDLER_NATS_URL="+s.NATSURL(),
		"CHANDLER_NATS_NKEY_SEED="+s.identity(service).NKeySeed,
		"CHANDLER_NATS_CREDENTIALS="+s.identity(service).Credentials,
		"CHANDLER_OPS_LISTEN="+s.ops[name],
		"CHANDLER_LOG_FORMAT=text",
	)
	for _, kind := range bodies.Readers()[service] {
		env = append(env, kind.Variable()+"="+s.secrets.bodies+string(kind))
	}
	switch service {
	case "gateway":
		env = append(env, "CHANDLER_LISTEN="+cmp.Or(s.apis[name], s.api), "CHANDLER_ADMIN_TOKEN="+s.secrets.token,
			"CHANDLER_CREDENTIALS_RECIPIENT="+s.secrets.recipient, "CHANDLER_CATALOG_CREDENTIALS_RECIPIENT="+
				s.secrets.catalogRecipient,
			"CHANDLER_HOOK_KEY="+s.secrets.hookKey,
			"CHANDLER_REQUESTS_DATABASE_URL="+s.postgres.RoleURL(migrate.GatewayRequests))
	case "catalog-indexer":
		env = append(env, "CHANDLER_CATALOG_CREDENTIALS_IDENTITY="+s.secrets.catalogIdentity, "CHANDLER_CATALOG_CACHE="+
			s.file("catalog-cache"+strings.TrimPrefix(name, service)))
	case "installer":
		env = append(env, "CHANDLER_CREDENTIALS_IDENTITY="+s.secrets.identity, "CHANDLER_GRANT_KEY="+s.secrets.grantKey,
			"CHANDLER_CLUSTERS_ON_THIS_MACHINE=true")
		if s.operator != nil {
			env = append(env, "CHANDLER_NATS_AGENTS="+s.operator.Authority)
		}
	}
	if s.opts.Env != nil {
		env = append(env, s.opts.Env(service)...)
	}
	return env
}

func (s *Stack) run(name, path string, args, env []string) error {
	if p := s.running[name]; p != nil && p.ID().Alive() {
		return fmt.Errorf("%s runs already", name)
	}
	p, err := proc.Start(proc.Spec{Name: name, Path: path, Args: args, Env: env, Dir: s.opts.Dir, Log: s.Log(name)})
	if err != nil {
		return err
	}
	s.running[name] = p
	return nil
}

// await polls until ready has no error, and stops early when the process has ended by itself.
func (s *Stack) await(ctx context.Context, name string, ready func(context.Context) error) error {
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		if failure := s.running[name].Failure(); failure != nil {
			return failure
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w: %w\n%s", name, context.Cause(ctx), err, proc.Tail(s.Log(name)))
		case <-ticker.C:
		}
	}
}

// Kill ends a part at once, as kill -9 does.
func (s *Stack) Kill(name string) { s.running[name].Kill() }

// Stop ends everything and removes the database. Logs stay, so that they can be read.
func (s *Stack) Stop() error {
	var errs []error
	// Services go before what they need.
	for name, p := range s.running {
		if name != natsServer {
			p.Kill()
		}
	}
	if p := s.running[natsServer]; p != nil {
		p.Kill()
	}
	if s.postgres != nil {
		errs = append(errs, s.postgres.Remove())
	}
	return errors.Join(errs...)
}

// URL is where the API is.
func (s *Stack) URL() string { return "http://" + s.api }

// SecondURL is where the API of the second gateway is.
func (s *Stack) SecondURL() string { return "http://" + s.apis[Second("gateway")] }

// Token is the administrator's.
func (s *Stack) Token() string { return s.secrets.token }

// NATSURL is where NATS is.
func (s *Stack) NATSURL() string { return fmt.Sprintf("nats://127.0.0.1:%d", s.natsPort) }

// Postgres is the instance of the stack.
func (s *Stack) Postgres() *pglocal.Server { return s.postgres }

// Bin is the folder of the binaries.
func (s *Stack) Bin() string { return s.opts.Bin }

// Log is the file with the output of a part.
func (s *Stack) Log(name string) string { return s.file("logs", name+".log") }

func (s *Stack) file(elements ...string) string {
	return filepath.Join(append([]string{s.opts.Dir}, elements...)...)
}
