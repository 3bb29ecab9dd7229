package failure

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/chandler-fleet/chandler/services/installer/executor/kube"
)

// CrashError is what an error of a test at one of the Points becomes: it ends the executor as kill -9 would, without an
// orderly end.
type CrashError struct{ Err error }

func (c CrashError) Error() string { return c.Err.Error() }
func (c CrashError) Unwrap() error { return c.Err }

// Points are the places between two effects, by name; nil where nobody listens. An error ends the executor there and
// then. They are for tests.
type Points func(point string) error

// At is a point between two effects.
func (p Points) At(point string) error {
	if p == nil {
		return nil
	}
	if err := p(point); err != nil {
		return CrashError{err}
	}
	return nil
}

// Between has one effect between two points.
func (p Points) Between(what string, effect func() error) error {
	if err := p.At("before " + what); err != nil {
		return err
	}
	if err := effect(); err != nil {
		return err
	}
	return p.At(what)
}

// panicked is what a panic becomes: a fault over one plan or cluster must not end the others.
type panicked struct {
	where string
	value any
}

func (p panicked) Error() string { return fmt.Sprintf("panic in %s: %v", p.where, p.value) }

// IsPanic reports an error that was a panic.
func IsPanic(err error) bool {
	_, ok := errors.AsType[panicked](err)
	return ok
}

// IsCrash reports an error that ends the executor as a crash would.
func IsCrash(err error) bool {
	_, ok := errors.AsType[CrashError](err)
	return ok
}

// Guard calls do and turns a panic into an error; where it came from goes into the log.
func Guard(ctx context.Context, log *slog.Logger, where string, do func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			log.ErrorContext(ctx, "panic", "where", where, "panic", v, "stack", string(debug.Stack()))
			err = panicked{where: where, value: v}
		}
	}()
	return do()
}

// Final reports an error that ends the session.
func Final(ctx context.Context, err error) bool {
	return ctx.Err() != nil || kube.IsFenced(err) || IsCrash(err)
}
