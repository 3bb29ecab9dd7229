package registry

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/chandler-fleet/chandler/libs/errs"
	api "github.com/chandler-fleet/chandler/libs/registryapi"
	"github.com/chandler-fleet/chandler/libs/source/internal/errtext"
)

// reader asks one server, under the limits.
type reader struct {
	api     api.RegistryClient
	conn    *grpc.ClientConn
	address string
	stall   time.Duration
	limits  limits
	bytes   atomic.Int64
	facts   atomic.Int64
	crowded atomic.Bool // an answer had too many parts
	large   sync.Mutex  // of one large answer at a time
}

// errStalled is the cause of a context that a watch has ended.
var errStalled = errors.New("no answer in time")

// watch ends a call when nothing came for a while.
type watch struct {
	timer *time.Timer
	every time.Duration
	end   context.CancelCauseFunc
}

func (r *reader) watch(ctx context.Context) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	return ctx, &watch{timer: time.AfterFunc(r.stall, func() { cancel(errStalled) }), every: r.stall, end: cancel}
}

func (w *watch) seen() { w.timer.Reset(w.every) }

func (w *watch) stop() {
	w.timer.Stop()
	w.end(nil)
}

// took counts an answer.
func (r *reader) took(m proto.Message) error {
	if r.bytes.Add(int64(proto.Size(m))) > r.limits.bytes {
		return errs.New(errs.TooLarge, "catalog server %s sent more than %d bytes", r.address, r.limits.bytes).At(
			"address", "registry.MaxBytes")
	}
	return nil
}

// overhead is what a fact takes in memory beside its text.
const overhead = 64

// remember counts names that are kept until the catalog was read, and refuses one that is none.
func (r *reader) remember(names ...string) error {
	for _, name := range names {
		if len(name) > MaxName {
			return errs.New(errs.TooLarge, "catalog server %s sends a name or a range of %d bytes, more than %d: %q…",
				r.address, len(name), MaxName, errtext.Clean(name[:40])).At("address", "registry.MaxName")
		}
		if err := r.keep(len(name)); err != nil {
			return err
		}
	}
	return nil
}

// keep counts bytes that are kept until the catalog was read.
func (r *reader) keep(bytes int) error {
	if r.facts.Add(int64(bytes)+overhead) > r.limits.facts {
		return errs.New(errs.TooLarge, "catalog server %s says more than %d bytes beside manifests", r.address,
			r.limits.facts).At("address", "registry.MaxFacts")
	}
	return nil
}

// ask makes one call, whose answer may have most bytes.
func ask[Q any, A proto.Message](ctx context.Context, r *reader, most int,
	call func(context.Context, Q, ...grpc.CallOption) (A, error), question Q,
) (A, error) {
	watched, w := r.watch(ctx)
	defer w.stop()
	a, err := call(watched, question, grpc.MaxCallRecvMsgSize(most))
	if err == nil {
		err = r.took(a)
	}
	return a, r.explain(watched, most, err)
}

// stream makes a call with many answers, each of which may have most bytes. Only its proper end is success.
func stream[Q any, A any, P interface {
	*A
	proto.Message
}](ctx context.Context, r *reader, most int, call func(context.Context, Q, ...grpc.CallOption) (
	grpc.ServerStreamingClient[A], error), question Q, take func(P) error,
) error {
	watched, w := r.watch(ctx)
	defer w.stop()
	s, err := call(watched, question, grpc.MaxCallRecvMsgSize(most))
	if err != nil {
		return r.explain(watched, most, err)
	}
	for {
		a, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return r.explain(watched, most, err)
		}
		w.seen()
		if err := r.took(P(a)); err != nil {
			return err
		}
		if err := take(a); err != nil {
			return err
		}
	}
}

// kindOf is what the caller can do about a code. What is not here may be better next time.
var kindOf = map[codes.Code]errs.Kind{
	codes.NotFound: errs.NotFound, codes.Unauthenticated: errs.Forbidden, codes.PermissionDenied: errs.Forbidden,
	codes.InvalidArgument: errs.Invalid,
}

// explain makes an error of a call one that says which server, and what can be done.
func (r *reader) explain(ctx context.Context, most int, err error) error {
	var known *errs.Error
	switch {
	case err == nil || errors.As(err, &known):
		return err
	case errors.Is(context.Cause(ctx), errStalled):
		return errs.New(errs.Unavailable, "catalog server %s sent nothing for %s", r.address, r.stall)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	said := errtext.Clean(status.Convert(err).Message())
	switch code := status.Code(err); {
	case code == codes.Internal && r.crowded.Load():
		return errs.New(errs.TooLarge, "catalog server %s sent an answer of more than %d parts", r.address,
			r.limits.fields).At("address", "registry.MaxFields")
	case code == codes.ResourceExhausted:
		return errs.New(errs.TooLarge,
			"catalog server %s sent an answer of more than %d bytes, or is asked too much: %s", r.address, most, said)
	case code == codes.Unimplemented:
		return errs.New(errs.Invalid, "%s is no catalog server, or one from before ListBundles: %s", r.address, said)
	case strings.Contains(said, "tls: ") || strings.Contains(said, "x509: "):
		return errs.New(errs.Invalid,
			"catalog server %s: %s; set insecure for a server without TLS, or add its authority as a secret of kind ca",
			r.address, said)
	case kindOf[code] != "":
		return errs.New(kindOf[code], "catalog server %s: %s", r.address, said)
	}
	return errs.New(errs.Unavailable, "catalog server %s: %s", r.address, said)
}
