package server

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/digest"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// Catalog is one revision of a catalog: its answers do not change. Methods are called from several
// goroutines; errors of kind NotFound mean what they say.
type Catalog interface {
	// Packages names the packages.
	Packages(ctx context.Context) ([]string, error)
	// Package returns the document of a package.
	Package(ctx context.Context, name string) (catalog.Package, error)
	// Content returns the manifests of a bundle as JSON, NotFound if they are not available.
	Content(ctx context.Context, d digest.Digest) ([]json.RawMessage, error)
	// Blobs yields the documents of a schema that Chandler does not know, of a package or, with "",
	// of none.
	Blobs(ctx context.Context, schema, pkg string, send func(json.RawMessage) error) error
}

// Bounds on callers.
const (
	// maxRequestBytes bounds a question; honest ones are a few names.
	maxRequestBytes = 64 << 10
	// maxStreams bounds the calls of one connection at a time; clients make a dozen.
	maxStreams = 128
	// idle is how long a connection without calls is kept; clients dial again by themselves.
	idle = 15 * time.Minute
	// pings is how often a client may ask whether the connection stands; some ask every 10 seconds.
	pings = 5 * time.Second
	// drain is how long calls may go on after the end was asked for.
	drain = 10 * time.Second
)

// Server answers for one catalog, the revision of which can be replaced.
type Server struct {
	api.UnimplementedRegistryServer
	api.UnimplementedExperimentalRegistryServer

	log   *slog.Logger
	index atomic.Pointer[index]
}

// New reads the packages of a catalog and returns a server for it.
func New(ctx context.Context, c Catalog, log *slog.Logger) (*Server, error) {
	s := &Server{log: log}
	if err := s.Replace(ctx, c); err != nil {
		return nil, err
	}
	return s, nil
}

// Replace puts another revision in place of the one that is served. Calls are answered from the old one
// until the new one is read whole; where that fails the old one stays. Calls that run keep theirs.
func (s *Server) Replace(ctx context.Context, c Catalog) error {
	x, err := newIndex(ctx, c, s.log)
	if err != nil {
		return err
	}
	s.index.Store(x)
	return nil
}

// Register adds the registry to a gRPC server, and the standard services for health and for reflection:
// people inspect catalogs with tools that learn the calls from the server.
func (s *Server) Register(g *grpc.Server) {
	api.RegisterRegistryServer(g, s)
	api.RegisterExperimentalRegistryServer(g, s)
	h := health.NewServer()
	for _, name := range []string{
		"", api.Registry_ServiceDesc.ServiceName,
		api.ExperimentalRegistry_ServiceDesc.ServiceName,
	} {
		h.SetServingStatus(name, healthpb.HealthCheckResponse_SERVING)
	}
	healthpb.RegisterHealthServer(g, h)
	reflection.Register(g)
}

// Serve answers on a listener until ctx ends; calls that run then have a little time to finish.
// More options, such as TLS credentials, go before those that bound callers.
func (s *Server) Serve(ctx context.Context, ln net.Listener, more ...grpc.ServerOption) error {
	g := grpc.NewServer(append(more,
		grpc.MaxRecvMsgSize(maxRequestBytes), grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idle}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pings, PermitWithoutStream: true}),
	)...)
	s.Register(g)
	stop := context.AfterFunc(ctx, func() {
		hard := time.AfterFunc(drain, g.Stop)
		defer hard.Stop()
		g.GracefulStop()
	})
	defer stop()
	if err := g.Serve(ln); ctx.Err() == nil {
		return err
	}
	return nil
}
