package dev

import (
	"context"

	"github.com/chandler-fleet/chandler/libs/service"
	"github.com/chandler-fleet/chandler/libs/telemetry"
	indexer "github.com/chandler-fleet/chandler/services/catalog-indexer/app"
	gateway "github.com/chandler-fleet/chandler/services/gateway/app"
	installer "github.com/chandler-fleet/chandler/services/installer/app"
	resolver "github.com/chandler-fleet/chandler/services/resolver/app"
)

// program is one of the services.
type program struct {
	name  string
	start func(ctx context.Context, env service.LookupEnv, tel *telemetry.Telemetry) (
		run func(context.Context) error, err error)
}

// programs are the services in the order of their start: who takes requests comes last and stops first.
func programs() []program {
	return []program{
		{"catalog-indexer", starter(indexer.New)},
		{"resolver", starter(resolver.New)},
		{"installer", starter(installer.New)},
		{"gateway", starter(gateway.New)},
	}
}

// configuration is a pointer to a service's configuration.
type configuration[C any] interface {
	*C
	service.Configurable
}

// starter loads the configuration of a service from env alone, as its main would.
func starter[C any, P configuration[C], A interface{ Run(context.Context) error }](
	build func(context.Context, C, *telemetry.Telemetry) (A, error),
) func(context.Context, service.LookupEnv, *telemetry.Telemetry) (func(context.Context) error, error) {
	return func(ctx context.Context, env service.LookupEnv, tel *telemetry.Telemetry) (
		func(context.Context) error, error,
	) {
		var cfg C
		s := service.NewSettings("dev")
		P(&cfg).Settings(s)
		if err := s.Load(nil, env); err != nil {
			return nil, err
		}
		a, err := build(ctx, cfg, tel)
		if err != nil {
			return nil, err
		}
		return a.Run, nil
	}
}
