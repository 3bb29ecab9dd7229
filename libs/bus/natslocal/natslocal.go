// Package natslocal runs a NATS server with JetStream inside the process, on loopback, for
// `chandler dev` and for tests. It is the real server as a library, not an imitation. It is a module of its own, since
// nothing else needs that library.
package natslocal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// readyIn bounds the start; recovery of a large store is the slow part.
const readyIn = 30 * time.Second

// loopback is the only address that it listens on.
const loopback = "127.0.0.1"

// Options say where the server keeps its data.
type Options struct {
	// Dir holds JetStream's store; it is made where it is missing.
	Dir string
	// Port to listen on; 0 is a free one.
	Port int
	// Config are accounts and users in the language of nats-server's configuration (libs/natsauth); "" lets in
	// everybody.
	Config string
	// Log receives the server's warnings and errors; nil is silence.
	Log *slog.Logger
}

// Server is a running server.
type Server struct {
	srv  *server.Server
	dir  string
	auth string
	port int
	log  *slog.Logger
}

// Start starts a server and returns when it takes connections.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Dir == "" {
		return nil, errors.New("natslocal: Dir is empty")
	}
	if o.Port == 0 {
		o.Port = server.RANDOM_PORT
	}
	s := &Server{dir: o.Dir, auth: o.Config, port: o.Port, log: o.Log}
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Server) start(ctx context.Context) error {
	options, err := s.options(s.auth)
	if err != nil {
		return err
	}
	srv, err := server.NewServer(options)
	if err != nil {
		return fmt.Errorf("configure the NATS server: %w", err)
	}
	if s.log != nil {
		srv.SetLoggerV2(logger{s.log}, false, false, false)
	}
	srv.Start()
	wait := readyIn
	if d, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(d))
	}
	if !srv.ReadyForConnections(wait) {
		srv.Shutdown()
		return fmt.Errorf("the NATS server in %s was not ready within %s", s.dir, wait)
	}
	addr, ok := srv.Addr().(*net.TCPAddr)
	if !ok {
		srv.Shutdown()
		return errors.New("the NATS server has no TCP address")
	}
	s.srv, s.port = srv, addr.Port
	return nil
}

func (s *Server) options(auth string) (*server.Options, error) {
	options := &server.Options{}
	if auth != "" {
		if err := options.ProcessConfigString(auth); err != nil {
			return nil, fmt.Errorf("users of the NATS server: %w", err)
		}
	}
	options.ServerName, options.Host, options.Port = "chandler", loopback, s.port
	options.JetStream, options.StoreDir, options.NoSigs, options.NoLog = true, s.dir, true, s.log == nil
	return options, nil
}

// Reload gives a running server other accounts and users, without closing the connections of those who stay. It does so
// twice: nats-server subscribes for what an account imports when it starts, or when it reads the configuration of an
// account that it has already. With one reload a new account could send nothing to others.
func (s *Server) Reload(config string) error {
	for range 2 {
		options, err := s.options(config)
		if err != nil {
			return err
		}
		if err := s.srv.ReloadOptions(options); err != nil {
			return fmt.Errorf("change the users of the NATS server: %w", err)
		}
	}
	s.auth = config
	return nil
}

// URL is where to connect; it stays the same over Restart.
func (s *Server) URL() string { return "nats://" + net.JoinHostPort(loopback, strconv.Itoa(s.port)) }

// Stop ends the server and waits until it has written everything. It may be called twice.
func (s *Server) Stop() {
	s.srv.Shutdown()
	s.srv.WaitForShutdown()
}

// Restart starts a stopped server again on the same port and data.
func (s *Server) Restart(ctx context.Context) error { return s.start(ctx) }

// logger forwards warnings and errors of the server; its notices would only repeat its configuration.
type logger struct{ log *slog.Logger }

func (logger) Noticef(string, ...any) {}
func (logger) Debugf(string, ...any)  {}
func (logger) Tracef(string, ...any)  {}
func (l logger) Warnf(format string, v ...any) {
	l.log.Warn("nats-server: " + fmt.Sprintf(format, v...))
}

func (l logger) Errorf(format string, v ...any) {
	l.log.Error("nats-server: " + fmt.Sprintf(format, v...))
}

func (l logger) Fatalf(format string, v ...any) {
	l.log.Error("nats-server: " + fmt.Sprintf(format, v...))
}
