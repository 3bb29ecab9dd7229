package server

import (
	"context"
	"encoding/json"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/chandler-fleet/chandler/libs/catalog"
	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
)

// ListPackages names every package.
func (s *Server) ListPackages(_ *api.ListPackageRequest, stream grpc.ServerStreamingServer[api.PackageName]) error {
	for _, p := range s.index.Load().packages {
		if err := stream.Send(&api.PackageName{Name: p.name}); err != nil {
			return err
		}
	}
	return nil
}

// GetPackage returns the channels of a package with their heads.
func (s *Server) GetPackage(_ context.Context, r *api.GetPackageRequest) (*api.Package, error) {
	p := s.index.Load().byName[r.GetName()]
	if p == nil {
		return nil, answer(errs.New(errs.NotFound, "package %q is not in the catalog", r.GetName()))
	}
	out := &api.Package{Name: p.name, DefaultChannelName: p.defaultChannel, Deprecation: p.deprecation}
	for _, c := range p.channels {
		out.Channels = append(out.Channels, &api.Channel{
			Name: c.name, CsvName: c.graph.Head().Name,
			Deprecation: c.deprecation,
		})
	}
	return out, nil
}

// GetBundle returns one entry of a channel.
func (s *Server) GetBundle(ctx context.Context, r *api.GetBundleRequest) (*api.Bundle, error) {
	x := s.index.Load()
	p, c, err := x.find(r.GetPkgName(), r.GetChannelName())
	if err != nil {
		return nil, answer(err)
	}
	e, ok := c.graph.Entry(r.GetCsvName())
	if !ok {
		return nil, answer(errs.New(errs.NotFound, "channel %q of package %q has no entry %q", c.name, p.name,
			r.GetCsvName()))
	}
	return x.bundle(ctx, p, c, e)
}

// GetBundleForChannel returns the head of a channel.
func (s *Server) GetBundleForChannel(ctx context.Context, r *api.GetBundleInChannelRequest) (*api.Bundle, error) {
	x := s.index.Load()
	p, c, err := x.find(r.GetPkgName(), r.GetChannelName())
	if err != nil {
		return nil, answer(err)
	}
	return x.bundle(ctx, p, c, c.graph.Head())
}

// GetBundleThatReplaces returns the one replacement of a bundle in a channel, the nearest to the head
// (R-CAT-72).
func (s *Server) GetBundleThatReplaces(ctx context.Context, r *api.GetReplacementRequest) (*api.Bundle, error) {
	x := s.index.Load()
	p, c, err := x.find(r.GetPkgName(), r.GetChannelName())
	if err != nil {
		return nil, answer(err)
	}
	next := c.graph.Successors(r.GetCsvName(), "")
	if len(next) == 0 {
		return nil, answer(errs.New(errs.NotFound, "channel %q of package %q has no replacement of %q", c.name, p.name,
			r.GetCsvName()))
	}
	return x.bundle(ctx, p, c, next[0])
}

// GetDefaultBundleThatProvides returns the head of the first default channel that provides an API.
func (s *Server) GetDefaultBundleThatProvides(ctx context.Context, r *api.GetDefaultProviderRequest) (
	*api.Bundle, error,
) {
	x := s.index.Load()
	p, c, err := x.defaultProvider(gvk(r))
	if err != nil {
		return nil, answer(err)
	}
	return x.bundle(ctx, p, c, c.graph.Head())
}

// GetChannelEntriesThatReplace returns every edge from a bundle.
func (s *Server) GetChannelEntriesThatReplace(r *api.GetAllReplacementsRequest,
	stream grpc.ServerStreamingServer[api.ChannelEntry],
) error {
	return sendEntries(stream, s.index.Load().replacing(r.GetCsvName()), "replaces "+r.GetCsvName())
}

// GetChannelEntriesThatProvide returns the edges to every bundle that provides an API.
func (s *Server) GetChannelEntriesThatProvide(r *api.GetAllProvidersRequest,
	stream grpc.ServerStreamingServer[api.ChannelEntry],
) error {
	return sendEntries(stream, s.index.Load().providing(gvk(r), false), "provides "+gvk(r).String())
}

// GetLatestChannelEntriesThatProvide returns the edges to every head that provides an API.
func (s *Server) GetLatestChannelEntriesThatProvide(r *api.GetLatestProvidersRequest,
	stream grpc.ServerStreamingServer[api.ChannelEntry],
) error {
	return sendEntries(stream, s.index.Load().providing(gvk(r), true), "provides "+gvk(r).String())
}

func gvk(r interface {
	GetGroup() string
	GetVersion() string
	GetKind() string
},
) catalog.GVK {
	return catalog.GVK{Group: r.GetGroup(), Version: r.GetVersion(), Kind: r.GetKind()}
}

// sendEntries sends what was found; nothing is an error of these calls, not an empty list.
func sendEntries(stream grpc.ServerStreamingServer[api.ChannelEntry], list []*api.ChannelEntry, what string) error {
	if len(list) == 0 {
		return answer(errs.New(errs.NotFound, "no channel entry %s", what))
	}
	for _, e := range list {
		if err := stream.Send(e); err != nil {
			return err
		}
	}
	return nil
}

// ListBundles returns every entry of every channel, package by package, so that memory holds one
// package and, of bundles without an image, one bundle.
func (s *Server) ListBundles(_ *api.ListBundlesRequest, stream grpc.ServerStreamingServer[api.Bundle]) error {
	x := s.index.Load()
	for _, p := range x.packages {
		doc, err := x.catalog.Package(stream.Context(), p.name)
		if err != nil {
			return answer(err)
		}
		for _, c := range p.channels {
			for _, e := range c.entries {
				b, err := x.listed(stream.Context(), doc, c, e)
				if err != nil {
					return answer(err)
				}
				if err := stream.Send(b); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// acknowledge is the header without which the experimental service says nothing.
const acknowledge = "x-acknowledge-experimental"

// ExperimentalListPackageCustomSchemas returns the documents of a schema without a meaning of its own.
func (s *Server) ExperimentalListPackageCustomSchemas(r *api.ExperimentalListPackageCustomSchemasRequest,
	stream grpc.ServerStreamingServer[structpb.Struct],
) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	if v := md.Get(acknowledge); len(v) == 0 || v[0] != "true" {
		return nil
	}
	if r.GetSchema() == "" {
		return status.Error(codes.InvalidArgument, "the schema is empty; name the schema whose documents are wanted")
	}
	err := s.index.Load().catalog.Blobs(stream.Context(), r.GetSchema(), r.GetPackageName(),
		func(raw json.RawMessage) error {
			var m structpb.Struct
			if err := m.UnmarshalJSON(raw); err != nil {
				return errs.Wrap(errs.Internal, err, "a document of schema %q", r.GetSchema())
			}
			return stream.Send(&m)
		})
	return answer(err)
}

// codeOf is the one table from kinds of errors to gRPC codes.
var codeOf = map[errs.Kind]codes.Code{
	errs.NotFound: codes.NotFound, errs.Invalid: codes.FailedPrecondition, errs.Unprocessable: codes.FailedPrecondition,
	errs.TooLarge: codes.ResourceExhausted, errs.Unauthenticated: codes.Unauthenticated,
	errs.Forbidden: codes.PermissionDenied, errs.Unavailable: codes.Unavailable, errs.Conflict: codes.Aborted,
	errs.AlreadyExists: codes.AlreadyExists,
}

// answer makes an error one for callers: with a code of gRPC.
func answer(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return status.FromContextError(err).Err()
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	code, ok := codeOf[errs.KindOf(err)]
	if !ok {
		code = codes.Internal
	}
	return status.Error(code, err.Error())
}
