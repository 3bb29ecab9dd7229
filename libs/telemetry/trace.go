package telemetry

import (
	"context"
	"log/slog"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

const (
	traceParentKey = "traceparent"
	tracerName     = "github.com/chandler-fleet/chandler"
)

// TraceParent is the W3C traceparent of ctx, "" where there is none.
func TraceParent(ctx context.Context) string {
	c := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, c)
	return c[traceParentKey]
}

// WithTraceParent returns ctx inside the trace that tp names; a tp that is empty or malformed changes nothing.
func WithTraceParent(ctx context.Context, tp string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{traceParentKey: tp})
}

// Span starts a span below that of ctx. The returned function ends it, and marks it failed for an error.
func Span(ctx context.Context, name string, attrs ...attribute.KeyValue) (context.Context, func(error)) {
	//nolint:spancheck // the returned function ends it
	ctx, span := otel.Tracer(tracerName).Start(ctx, name, trace.WithAttributes(attrs...))
	return ctx, func(err error) { //nolint:spancheck // as above
		if err != nil {
			span.RecordError(err)
			span.SetStatus(codes.Error, err.Error())
		}
		span.End()
	}
}

// traceHandler adds the trace id of the context to every line.
type traceHandler struct{ slog.Handler }

func (h traceHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r.AddAttrs(slog.String("trace", sc.TraceID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h traceHandler) WithAttrs(a []slog.Attr) slog.Handler {
	return traceHandler{h.Handler.WithAttrs(a)}
}

func (h traceHandler) WithGroup(name string) slog.Handler {
	return traceHandler{h.Handler.WithGroup(name)}
}
