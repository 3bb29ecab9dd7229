package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// panicked is what a panic becomes: a fault over one plan or cluster must not end the others.
type panicked struct {
	where string
	value any
}

func (p panicked) Error() string { return fmt.Sprintf("panic in %s: %v", p.where, p.value) }

func isPanic(err error) bool {
	_, ok := errors.AsType[panicked](err)
	return ok
}

func isCrash(err error) bool {
	_, ok := errors.AsType[crash](err)
	return ok
}

// guard calls do and turns a panic into an error; where it came from goes into the log.
func guard(ctx context.Context, log *slog.Logger, where string, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.ErrorContext(ctx, "panic", "where", where, "panic", v, "stack", string(debug.Stack()))
			err = panicked{where: where, value: v}
		}
	}()
	return do()
}

// keep runs what is to run until ctx ends, again after a panic.
func (e *Executor) keep(ctx context.Context, where string, run func(context.Context)) {
	wait := e.cfg.Timing.Backoff
	for ctx.Err() == nil {
		if guard(ctx, e.cfg.Log, where, func() error { run(ctx); return nil }) == nil {
			return
		}
		pause(ctx, wait)
		wait = min(2*wait, reconnectMax)
	}
}
