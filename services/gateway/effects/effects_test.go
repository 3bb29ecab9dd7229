package effects_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/effects"
)

type history = []events.Payload

func TestDecide(t *testing.T) {
	t.Parallel()
	stopped := events.EffectsStopped{Reason: "Operator"}
	resumed := events.EffectsResumed{Epoch: 2}
	cases := []struct {
		name  string
		given history
		when  effects.Command
		then  history
		kind  errs.Kind
	}{
		{"stop", nil, effects.Stop{Reason: "Operator"}, history{stopped}, ""},
		{"stop twice", history{stopped}, effects.Stop{Reason: "Operator"}, nil, ""},
		{
			"lost commits beside a person's stop",
			history{stopped},
			effects.Stop{Reason: "RecordLostCommits"},
			history{events.EffectsStopped{Reason: "RecordLostCommits"}},
			"",
		},
		{
			"a person's stop beside lost commits",
			history{events.EffectsStopped{Reason: "RecordLostCommits"}},
			effects.Stop{Reason: "Operator"},
			nil, "",
		},
		{"resume", history{stopped}, effects.Resume{Epoch: 2, Record: 2}, history{resumed}, ""},
		{"resume what goes on", history{stopped, resumed}, effects.Resume{Epoch: 2, Record: 2}, nil, ""},
		{"resume after lost commits", nil, effects.Resume{Epoch: 2, Record: 2, Lost: true}, history{resumed}, ""},
		{"resume blindly", history{stopped}, effects.Resume{}, nil, errs.Invalid},
		{
			"accept an epoch that is not the record's",
			history{stopped},
			effects.Resume{Epoch: 3, Record: 2},
			nil,
			errs.Conflict,
		},
		{"accept an epoch that is over", nil, effects.Resume{Epoch: 1, Record: 2}, nil, errs.Conflict},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s effects.State
			for _, p := range c.given {
				var err error
				if s, err = effects.Evolve(s, p, time.Unix(0, 0)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := effects.Decide(s, c.when)
			if errs.KindOf(err) != c.kind {
				t.Fatalf("error %v, want kind %q", err, c.kind)
			}
			if diff := cmp.Diff(c.then, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := effects.Evolve(effects.State{}, events.ClusterRemoved{}, time.Time{}); err == nil {
		t.Error("an event of another kind of stream must not pass silently")
	}
}
