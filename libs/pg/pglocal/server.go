package pglocal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/chandler-fleet/chandler/libs/errs"
)

const (
	// startLimit bounds the wait for a started instance: a second when all is well, more after a crash.
	startLimit = 60 * time.Second
	// stopLimit bounds an orderly stop, after which the instance is killed; it recovers at the next start.
	stopLimit = 20 * time.Second
	// pollEvery is how often a starting or ending instance is polled.
	pollEvery = 10 * time.Millisecond
)

// Options of Start.
type Options struct {
	// Dir keeps the data. Empty: a temporary directory that Stop removes. As root, where the account
	// that runs PostgreSQL cannot enter Dir (below /root, for instance), the data lies elsewhere: see DataDir.
	Dir string
	// Like is the data directory of an instance that has stopped: where Dir holds no data, it begins as a copy of that.
	// Without it, as an empty instance.
	Like string
	// Durable is as in production: what is committed survives a power cut. Tests leave it off.
	Durable bool
	// Settings are further settings of the instance, as NAME=VALUE.
	Settings []string
	// Outlive lets the instance go on when this process ends; Attach finds it again.
	Outlive bool
	Log     *slog.Logger // default slog.Default()
}

// Server is a running instance.
type Server struct {
	dir    string // data
	origin string // the directory that was asked for; "" for a temporary instance
	socket string // directory of the unix socket
	temp   bool
	pid    int
	done   <-chan struct{} // closed when our child has ended; nil for an instance that we did not start
}

// Start starts an instance and waits until it answers. What a dead owner has left running in Dir is
// stopped first; one whose owner lives is an error.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	acc, err := findAccount()
	if err != nil {
		return nil, err
	}
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	if err := acc.claimBase(); err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	s, err := place(acc, o)
	if err != nil {
		return nil, err
	}
	if err := s.prepare(ctx, acc, bin, o); err != nil {
		return nil, fmt.Errorf("private PostgreSQL in %s: %w", s.dir, err)
	}
	if err := s.run(ctx, acc, bin, o); err != nil {
		return nil, fmt.Errorf("private PostgreSQL in %s: %w", s.dir, err)
	}
	if err := s.await(ctx); err != nil {
		_ = s.Stop() // the first error is the one to return
		return nil, err
	}
	return s, nil
}

// place decides where data and socket lie.
func place(acc account, o Options) (*Server, error) {
	reap()
	if o.Dir == "" {
		dir, err := os.MkdirTemp(base(), fmt.Sprintf("own-%d-", os.Getpid()))
		if err != nil {
			return nil, fmt.Errorf("private PostgreSQL: %w", err)
		}
		if err := acc.own(dir, 0o700); err != nil {
			return nil, fmt.Errorf("private PostgreSQL: %w", err)
		}
		return &Server{dir: filepath.Join(dir, "data"), socket: dir, temp: true}, nil
	}
	return located(acc, o.Dir)
}

// located is the instance of a given directory, running or not.
func located(acc account, dir string) (*Server, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("private PostgreSQL: %w", err)
	}
	sum := sha256.Sum256([]byte(abs))
	s := &Server{dir: abs, origin: abs, socket: filepath.Join(base(), "kept-"+hex.EncodeToString(sum[:6]))}
	if !acc.mayEnter(abs) {
		s.dir = filepath.Join(s.socket, "data")
	}
	return s, nil
}

// prepare makes the data directory, or sees to it that nobody else runs on it.
func (s *Server) prepare(ctx context.Context, acc account, bin string, o Options) error {
	if err := acc.own(s.socket, 0o700); err != nil {
		return err
	}
	if err := s.markOrigin(); err != nil {
		return err
	}
	if pid, running := s.running(); running {
		if owner, alive := s.owner(); alive && owner != os.Getpid() {
			return errs.New(errs.Unavailable, "process %d runs a PostgreSQL on it", owner)
		}
		s.pid = pid
		if err := s.Stop(); err != nil {
			return err
		}
		s.pid = 0
	}
	if _, err := os.Stat(filepath.Join(s.dir, "PG_VERSION")); err == nil {
		return nil
	}
	if err := acc.own(s.dir, 0o700); err != nil {
		return err
	}
	o.Log.InfoContext(ctx, "makes a private PostgreSQL", "dir", s.dir)
	if o.Like != "" {
		return copied(ctx, o.Like, s.dir)
	}
	return initdb(ctx, acc, bin, s.dir)
}

// copied copies a data directory with its owner and modes to one that is empty. It is named so when it is whole, since
// what a copy that was cut short has left would be taken for a database.
func copied(ctx context.Context, from, to string) error {
	unfinished := to + ".unfinished"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "cp", "-a", from, unfinished).CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("copy %s: %w: %s", from, err, strings.TrimSpace(string(out))),
			os.RemoveAll(unfinished))
	}
	return errors.Join(os.Remove(to), os.Rename(unfinished, to))
}

// initdb makes an empty data directory. The socket's directory is the lock, so that trust is enough.
func initdb(ctx context.Context, acc account, bin, dir string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", dir, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--no-locale", "--no-sync", "--no-instructions")
	cmd.SysProcAttr, cmd.Dir = acc.attributes(), "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// run starts the instance. On Linux the kernel interrupts it when the thread that started it ends, so
// that thread is kept until the instance has ended; elsewhere the next Start stops what was left.
func (s *Server) run(ctx context.Context, acc account, bin string, o Options) error {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"),
		arguments(s.dir, s.socket, o)...)
	cmd.SysProcAttr, cmd.Dir = acc.attributes(), "/"
	if !o.Outlive {
		endWithUs(cmd.SysProcAttr)
	}
	log, err := os.OpenFile(filepath.Join(s.socket, "postgres.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the child has its own copy
	cmd.Stdout, cmd.Stderr = log, log
	started, done := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	s.pid, s.done = cmd.Process.Pid, done
	return os.WriteFile(s.ownerFile(), []byte(strconv.Itoa(os.Getpid())), 0o644)
}

// arguments are the settings of an instance.
func arguments(dir, socket string, o Options) []string {
	settings := []string{
		"listen_addresses=", // the socket is the only way in
		"unix_socket_directories=" + socket,
		"max_connections=400", // the tests of several packages at once, each with some pools
		"shared_buffers=128MB",
		"max_wal_senders=0", "wal_level=minimal", // nobody replicates it
		"jit=off", // our queries are short, compiling them is not
		"log_min_messages=warning",
		"timezone=UTC",
	}
	if !o.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off", "synchronous_commit=off",
			"checkpoint_timeout=1h", "max_wal_size=1GB", "autovacuum_naptime=15s")
	}
	args := []string{"-D", dir}
	for _, v := range append(settings, o.Settings...) {
		args = append(args, "-c", v)
	}
	return args
}

// await waits until the instance answers.
func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ping(ctx, s.AdminURL())
		if err == nil {
			return nil
		}
		select {
		case <-s.done:
			return errs.New(errs.Unavailable, "the private PostgreSQL in %s ended while it started: %s", s.dir,
				s.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("the private PostgreSQL in %s does not answer: %w", s.dir, err)
		case <-tick.C:
		}
	}
}

func ping(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// lastWords are the last lines of the log.
func (s *Server) lastWords() string {
	const lines = 5
	data, err := os.ReadFile(filepath.Join(s.socket, "postgres.log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], " / ")
}

// AdminURL connects as the superuser to the database "postgres".
func (s *Server) AdminURL() string { return s.URL("postgres", "postgres") }

// RoleURL connects as a database role, such as "chandler_gateway", to the database "postgres".
func (s *Server) RoleURL(role string) string { return s.URL(role, "postgres") }

// URL connects as a role to a database.
func (s *Server) URL(role, database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(role), Path: "/" + database,
		RawQuery: url.Values{"host": {s.socket}, "port": {"5432"}}.Encode(),
	}
	return u.String()
}

// DataDir is where the data lies.
func (s *Server) DataDir() string { return s.dir }

// PID is the process id of the postmaster.
func (s *Server) PID() int { return s.pid }

// Stop ends the instance in good order, open sessions included, and removes a temporary one.
func (s *Server) Stop() error {
	if err := s.signal(syscall.SIGINT); err != nil {
		return err
	}
	if !s.gone(stopLimit) {
		if err := s.signal(syscall.SIGQUIT); err != nil {
			return err
		}
		s.gone(stopLimit)
	}
	if s.temp {
		return os.RemoveAll(s.socket)
	}
	return nil
}

// Crash kills the postmaster, as the kernel does with a process that takes too much memory. Its children end by
// themselves; the next Start recovers from the write-ahead log.
func (s *Server) Crash() error {
	if err := s.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !s.gone(stopLimit) {
		return fmt.Errorf("process %d does not end", s.pid)
	}
	return nil
}

func (s *Server) signal(sig syscall.Signal) error {
	if s.pid == 0 {
		return nil
	}
	if err := syscall.Kill(s.pid, sig); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("stop PostgreSQL (process %d): %w", s.pid, err)
	}
	return nil
}

// gone waits for the end of the instance.
func (s *Server) gone(limit time.Duration) bool {
	timeout := time.NewTimer(limit)
	defer timeout.Stop()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if s.done == nil && !alive(s.pid) {
			return true
		}
		select {
		case <-s.done: // never for an instance that is not our child
			return true
		case <-timeout.C:
			return false
		case <-tick.C:
		}
	}
}
