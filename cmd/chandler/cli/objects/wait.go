package objects

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/command"
	"github.com/chandler-fleet/chandler/cmd/chandler/cli/kinds"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const (
	// waitDefault is longer than most operators take to install, and shorter than usual limits of jobs in pipelines.
	waitDefault = 10 * time.Minute
	// waitInterval keeps the requests of a waiting pipeline few beside those of people.
	waitInterval = time.Second
)

// WaitCommand is chandler wait.
func WaitCommand(a *command.Env) *cobra.Command {
	var s command.Scope
	var what string
	var timeout time.Duration
	c := &cobra.Command{
		Use:   "wait KIND NAME... --for=(phase=PHASE|state=STATE|condition=TYPE[=STATUS]|delete)",
		Short: "Wait until objects are as wanted",
		Long: `Waits until each of the objects is as wanted, or until --timeout. Objects that do not exist yet are waited for, since
operators and install plans come after what asks for them. The phase of a subscription is that of its operator.

When the time is over, the status is 5 if all that is still waited for needs the approval of an install plan, and 6
otherwise. That Chandler cannot be reached in between does not end the wait.`,
		Example: `  chandler wait subscription/east-1/ports/tidegauge --for=phase=Succeeded --timeout 15m
  chandler wait operator tidegauge --cluster east-1 -n ports --for=delete
  chandler wait catalog fleet --for=state=Ready
  chandler wait sub tidegauge --cluster east-1 -n ports --for=condition=ResolutionFailed=False`,
		Args: command.RequireArgs(command.Unlimited),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := parseGoal(what)
			if err != nil {
				return err
			}
			if timeout < 0 {
				return command.Usagef("--timeout %s is negative; 0 looks once", timeout)
			}
			t, err := kinds.ParseTarget(a, s, args)
			if err != nil {
				return err
			}
			if len(t.Refs) == 0 {
				return command.Usagef("missing name of the %s", t.Kind.Singular())
			}
			w := waiting{timeout: timeout}
			for _, r := range t.Refs {
				w.objects = append(w.objects, object{kind: t.Kind.Singular(), ref: r, goal: g})
			}
			c, err := a.Client()
			if err != nil {
				return err
			}
			return wait(cmd.Context(), a, c, w)
		},
	}
	s.Flags(c)
	c.Flags().StringVar(&what, "for", "", "phase=PHASE, state=STATE, condition=TYPE[=STATUS] or delete")
	if err := c.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(goals(),
		cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err) // the flag was made above
	}
	c.Flags().DurationVar(&timeout, "timeout", waitDefault, "how long to wait; 0 looks once")
	return c
}

// waiting is what is waited for.
type waiting struct {
	objects []object
	timeout time.Duration
	say     bool // what is waited for, before the first wait
}

// object is one that is to be as wanted.
type object struct {
	kind string
	ref  client.Ref
	goal goal
	// changed and spec are of a subscription that was changed just before: how it stands may be from before the change.
	changed bool
	spec    *model.ChangeSubscription
	// missed is how it stands, when it is not as wanted.
	missed
}

type missed struct {
	now      string
	approval bool // an install plan waits for approval
}

// name is as in the output of get.
func (o *object) name() string { return o.kind + "/" + o.ref.String() }

// wait looks at what is not as wanted, again and again until the time is over.
func wait(ctx context.Context, a *command.Env, c *client.Client, w waiting) error {
	over, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	tick := time.NewTicker(waitInterval)
	defer tick.Stop()
	missing := w.objects
	for first := true; ; first = false {
		var err error
		if missing, err = w.round(ctx, a, c, missing, first); err != nil || len(missing) == 0 {
			return err
		}
		if w.timeout == 0 {
			return w.timedOut(missing)
		}
		select {
		case <-tick.C:
		case <-over.Done():
			if err := ctx.Err(); err != nil { // the command was interrupted
				return err
			}
			return w.timedOut(missing)
		}
	}
}

// round looks once at all that is missing, and returns what still is.
func (w waiting) round(
	ctx context.Context, a *command.Env, c *client.Client, missing []object, first bool,
) ([]object, error) {
	var still []object
	for _, o := range missing {
		met, err := o.check(ctx, a, c, first)
		if err != nil {
			return nil, err
		}
		if !met {
			still = append(still, o)
			if first && w.say {
				fmt.Fprintf(a.Err, "waiting up to %s until %s: %s\n", w.timeout, o.name(), o.goal)
			}
			continue
		}
		if err := a.Say("%s: %s", o.name(), o.goal); err != nil {
			return nil, err
		}
	}
	return still, nil
}

// check reads an object. Errors that may pass end the wait at the first look only: an address may be wrong.
func (o *object) check(ctx context.Context, a *command.Env, c *client.Client, first bool) (bool, error) {
	kind, err := kinds.Find(a, o.kind)
	if err != nil {
		return false, err
	}
	it, err := kind.Get(ctx, c, o.ref)
	switch {
	case client.IsStatus(err, http.StatusNotFound):
		if first {
			if err := kind.Misspelt(ctx, c, o.ref); err != nil {
				return false, err
			}
		}
		o.now, o.approval = "it does not exist", false
		return o.goal.what == goalDelete, nil
	case err != nil && !first && command.ExitStatus(err) == command.ExitUnavailable:
		o.now = err.Error()
		return false, nil
	case err != nil:
		return false, err
	}
	at, err := readStanding(it.Value)
	if err != nil {
		return false, err
	}
	var met bool
	met, o.now = o.goal.met(at)
	o.approval = at.needsApproval() && o.goal.what != goalDelete
	if met && o.changed {
		if met, err = o.settled(ctx, c); !met && err == nil {
			o.now = "the change is not decided on yet"
		}
	}
	return met, err
}

// settled says whether nothing more comes of a changed subscription. How it stands does not say so: until the change is
// decided on, it stands as before. A preview of the subscription as it is reads the log up to now before it answers.
func (o *object) settled(ctx context.Context, c *client.Client) (bool, error) {
	p, err := c.NewPreview(ctx, model.PreviewRequest{
		Changes: []model.PreviewChange{{Subscription: &model.PreviewSubscription{
			Cluster: o.ref.Cluster, Namespace: o.ref.Namespace, Name: o.ref.Name, Action: model.PreviewApply,
			Metadata: o.spec.Metadata, Spec: &o.spec.SubscriptionSpec,
		}}},
		Cluster: o.ref.Cluster, Namespace: o.ref.Namespace,
	}, model.ValidateDefault)
	if err != nil {
		return false, unlessUnavailable(err)
	}
	o.changed = p.Totals.Plans+p.Totals.Superseded > 0
	return !o.changed, nil
}

// timedOut says what was still waited for.
func (w waiting) timedOut(missing []object) error {
	status, texts := command.ExitWaiting, make([]string, len(missing))
	for i, o := range missing {
		texts[i] = fmt.Sprintf("%s: %s", o.name(), o.now)
		if o.approval {
			texts[i] += ", an install plan waits for approval"
		} else {
			status = command.ExitTimedOut
		}
	}
	return &author.ExitError{Code: status, Err: fmt.Errorf("after %s it is not so that %s: %s", w.timeout,
		missing[0].goal, strings.Join(texts, "; "))}
}

// unlessUnavailable is nil where the same question may be answered later.
func unlessUnavailable(err error) error {
	if command.ExitStatus(err) == command.ExitUnavailable {
		return nil
	}
	return err
}
