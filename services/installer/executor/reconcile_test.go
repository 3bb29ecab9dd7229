package executor

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/protocol"
	"github.com/chandler-fleet/chandler/services/installer/executor/failure"
	"github.com/chandler-fleet/chandler/services/installer/executor/scope"
)

// stageFunc is a stage of a test.
type stageFunc func() (scope.Result, error)

func (f stageFunc) Reconcile(context.Context, *scope.Scope) (scope.Result, error) { return f() }

func emptyScope() *scope.Scope {
	env := &scope.Env{Log: slog.New(slog.DiscardHandler)}
	return scope.New(env, protocol.ScopePlans{Scope: protocol.Scope{Namespace: "ports"}}, nil, time.Hour)
}

// TestStageListNamesWhatFails: the first error ends a reconcile; the innermost stage that met it is named, and the text
// that people are told is the error's own.
func TestStageListNamesWhatFails(t *testing.T) {
	t.Parallel()
	var ran []string
	at := func(name string, err error) namedStage {
		return namedStage{name, stageFunc(func() (scope.Result, error) {
			ran = append(ran, name)
			return scope.Result{}, err
		})}
	}
	away := errs.New(errs.Unavailable, "the API server is away")
	inner := stageList{at("overlays", nil), at("phases", away)}
	list := stageList{
		at("certificates", nil),
		{"all of them", stageFunc(func() (scope.Result, error) {
			return scope.Result{}, inner.run(t.Context(), emptyScope())
		})},
		at("drift", nil),
	}
	err := list.run(t.Context(), emptyScope())
	if stageOf(err) != "phases" || err.Error() != away.Error() || !errs.Is(err, errs.Unavailable) {
		t.Errorf("stage %q, error %v", stageOf(err), err)
	}
	if want := []string{"certificates", "overlays", "phases"}; !slices.Equal(ran, want) {
		t.Errorf("ran %v, want %v", ran, want)
	}
	panics := stageList{{"mirrors", stageFunc(func() (scope.Result, error) { panic("a shelf broke") })}}
	if err := panics.run(t.Context(), emptyScope()); !failure.IsPanic(err) || stageOf(err) != "mirrors" {
		t.Errorf("a panic came out as %v of stage %q", err, stageOf(err))
	}
}

// stepsOfTest wait for phases a number of times.
type stepsOfTest struct {
	waits  int
	failed []error
}

func (s *stepsOfTest) PhasesFailed(err error) { s.failed = append(s.failed, err) }

func (s *stepsOfTest) Reconcile(context.Context, *scope.Scope) (scope.Result, error) {
	s.waits--
	return scope.Result{Again: s.waits >= 0, Why: "a phase"}, nil
}

// TestPlansWaitForPhases: the phases are reconciled as often as a plan waits for them, and it is told where that
// failed.
func TestPlansWaitForPhases(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	outcomes := []error{away, nil}
	to, n := &stepsOfTest{waits: len(outcomes)}, 0
	p := plans{steps: to, phases: stageFunc(func() (scope.Result, error) {
		n++
		return scope.Result{}, outcomes[n-1]
	})}
	result, err := p.Reconcile(t.Context(), emptyScope())
	if err != nil || result.Again || !slices.Equal(to.failed, outcomes) {
		t.Errorf("%+v, %v; phases told %v, want %v", result, err, to.failed, outcomes)
	}
}
