package bus

import (
	"context"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// meterName names the instruments of this package.
const meterName = "github.com/chandler-fleet/chandler/libs/bus"

// published counts hints that the server has taken.
var published = counter("chandler.bus.hints.published", "Hints that JetStream has taken.")

// counter returns a counter of the process's meter; otel forwards instruments that were made before Start to it.
func counter(name, doc string) metric.Int64Counter {
	c, err := otel.Meter(meterName).Int64Counter(name, metric.WithDescription(doc))
	if err != nil {
		otel.Handle(err)
	}
	return c
}

// measureTimeout bounds what a scrape waits for the table of checkpoints; scrapers give up after ten seconds.
const measureTimeout = time.Second

// observe shows the consumer's status as gauges until the returned function is called.
func (c *Consumer) observe() func() {
	m := otel.Meter(meterName)
	lag, err1 := m.Int64ObservableGauge("chandler.consumer.lag",
		metric.WithDescription("Positions between a consumer and the log's head."))
	parked, err2 := m.Int64ObservableGauge("chandler.consumer.parked",
		metric.WithDescription("Streams parked by a consumer."))
	stopped, err3 := m.Int64ObservableGauge("chandler.consumer.stopped",
		metric.WithDescription("1 while a consumer cannot pass an event type unknown to it."))
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			otel.Handle(err)
			return func() {}
		}
	}
	who := metric.WithAttributes(attribute.String("consumer", c.Name))
	reg, err := m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		o.ObserveInt64(stopped, boolGauge(c.Status().Stopped != ""), who)
		ctx, cancel := context.WithTimeout(ctx, measureTimeout)
		defer cancel()
		// A gauge that stands still says that all is well: where the table cannot be read there is none.
		if now, err := c.Measure(ctx); err == nil {
			o.ObserveInt64(lag, now.Lag, who)
			o.ObserveInt64(parked, now.Parked, who)
		}
		return nil
	}, lag, parked, stopped)
	if err != nil {
		otel.Handle(err)
		return func() {}
	}
	return func() {
		if err := reg.Unregister(); err != nil {
			otel.Handle(err)
		}
	}
}

func boolGauge(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
