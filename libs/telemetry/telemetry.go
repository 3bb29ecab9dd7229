// Package telemetry starts logs, traces and metrics of a process, and carries the W3C trace context
// between events, messages and contexts.
//
// Logs are slog lines with the trace id of their context. Traces always have ids, so that an event
// carries its traceparent, and leave the process only when a collector is given. Metrics are pulled
// from Telemetry.Metrics. Start sets the providers of OpenTelemetry for the process, since
// instrumented libraries look for them there: call it once, in main.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	promexporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Options say what to start.
type Options struct {
	Service      string    // name of the process in logs and traces
	Version      string    // of Chandler; may be empty
	LogLevel     string    // debug, info (also ""), warn or error
	LogFormat    string    // json (also "") or text
	LogTo        io.Writer // os.Stderr when nil
	OTLPEndpoint string    // URL such as http://collector:4318; "" keeps spans in the process
	// Spans receive every finished span as well; tests look at a trace with it.
	Spans []sdktrace.SpanProcessor
}

// Telemetry is what was started.
type Telemetry struct {
	Log      *slog.Logger
	Metrics  http.Handler // text format of Prometheus
	registry *prometheus.Registry
	shutdown []func(context.Context) error
}

// Start starts what o says and makes its logger slog's default.
func Start(ctx context.Context, o Options) (*Telemetry, error) {
	log, err := newLogger(o)
	if err != nil {
		return nil, err
	}
	res := resource.NewSchemaless(attribute.String("service.name", o.Service),
		attribute.String("service.version", o.Version))
	tracer, err := newTracer(ctx, o, res)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(
		collectors.ProcessCollectorOpts{}))
	exporter, err := promexporter.New(promexporter.WithRegisterer(registry))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), tracer.Shutdown(ctx))
	}
	meter := metric.NewMeterProvider(metric.WithReader(exporter), metric.WithResource(res))

	otel.SetTracerProvider(tracer)
	otel.SetMeterProvider(meter)
	otel.SetTextMapPropagator(propagation.TraceContext{})
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.WarnContext(context.Background(), "telemetry", "error", err)
	}))
	slog.SetDefault(log)
	return &Telemetry{
		Log:      log,
		Metrics:  promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		registry: registry,
		shutdown: []func(context.Context) error{tracer.Shutdown, meter.Shutdown},
	}, nil
}

// Shutdown sends what is still held back.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var all []error
	for _, f := range t.shutdown {
		all = append(all, f(ctx))
	}
	if err := errors.Join(all...); err != nil {
		return fmt.Errorf("stop of telemetry: %w", err)
	}
	return nil
}

func newTracer(ctx context.Context, o Options, res *resource.Resource) (*sdktrace.TracerProvider, error) {
	opts := []sdktrace.TracerProviderOption{sdktrace.WithResource(res)}
	for _, p := range o.Spans {
		opts = append(opts, sdktrace.WithSpanProcessor(p))
	}
	if o.OTLPEndpoint != "" {
		exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.OTLPEndpoint))
		if err != nil {
			return nil, errs.Wrap(errs.Invalid, err, "OTLP endpoint")
		}
		opts = append(opts, sdktrace.WithBatcher(exporter))
	}
	return sdktrace.NewTracerProvider(opts...), nil
}

func newLogger(o Options) (*slog.Logger, error) {
	out := o.LogTo
	if out == nil {
		out = os.Stderr
	}
	var level slog.Level
	if o.LogLevel != "" {
		if err := level.UnmarshalText([]byte(o.LogLevel)); err != nil {
			return nil, errs.New(errs.Invalid, "log level %q: want debug, info, warn or error", o.LogLevel).At(
				"log-level", "")
		}
	}
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler
	switch o.LogFormat {
	case "", "json":
		h = slog.NewJSONHandler(out, opts)
	case "text":
		h = slog.NewTextHandler(out, opts)
	default:
		return nil, errs.New(errs.Invalid, "log format %q: want json or text", o.LogFormat).At("log-format", "")
	}
	return slog.New(traceHandler{h}).With("service", o.Service), nil
}
