package webhook_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/webhook"
)

func TestDecide(t *testing.T) {
	t.Parallel()
	owner := events.WebhookOwner{Kind: "User", Actor: "ann"}
	set := func(change func(*webhook.Set)) webhook.Set {
		c := webhook.Set{Owner: owner, Rights: access.Everything()}
		c.Spec = events.WebhookSpec{Address: "c1:a", Types: []string{"subscription.*", "cluster.*", "cluster.*"}}
		if change != nil {
			change(&c)
		}
		return c
	}
	there := webhook.State{Name: "w", Set: true, Owner: owner, Spec: events.WebhookSpec{
		Address: "c1:a", Target: "CloudEvents", Mode: "Structured", Types: []string{"cluster.*", "subscription.*"},
	}}
	disabled := there
	disabled.Disabled = webhook.ReasonGone
	made := events.WebhookSet{Name: "w", Spec: there.Spec, Owner: owner}
	one := func(p events.Payload) []events.Payload { return []events.Payload{p} }
	many := func(s *webhook.Set) { s.Others = webhook.MaxWebhooks }
	oddType := func(s *webhook.Set) { s.Spec.Types = []string{"x"} }
	oddMode := func(s *webhook.Set) { s.Spec.Target, s.Spec.Mode = "Slack", "Binary" }
	suspend := func(s *webhook.Set) { s.Spec.Suspended = true }
	noRights := func(s *webhook.Set) { s.Rights = nil }
	again := one(events.WebhookReplayRequested{After: "1-2"})
	rotated := one(events.WebhookSecretRotated{OverlapSeconds: 86400})
	gone := one(events.WebhookDisabled{Reason: "Gone"})
	second := events.Position{Epoch: 1, N: 2}
	for name, c := range map[string]struct {
		state   webhook.State
		command webhook.Command
		want    []events.Payload
		kind    errs.Kind
	}{
		"made":                    {webhook.State{Name: "w"}, set(nil), []events.Payload{made}, ""},
		"the same":                {there, set(nil), nil, ""},
		"the same, was given up":  {disabled, set(nil), []events.Payload{made}, ""},
		"one too many":            {webhook.State{Name: "w"}, set(many), nil, errs.Unprocessable},
		"beyond the owner's":      {there, set(noRights), nil, errs.Forbidden},
		"a type that is none":     {there, set(oddType), nil, errs.Invalid},
		"a mode of another":       {there, set(oddMode), nil, errs.Invalid},
		"given up":                {there, webhook.Disable{Reason: "Gone"}, gone, ""},
		"given up twice":          {disabled, webhook.Disable{Reason: "Failing"}, nil, ""},
		"replayed":                {there, webhook.Replay{After: second}, again, ""},
		"rotated":                 {there, webhook.Rotate{}, rotated, ""},
		"deleted":                 {there, webhook.Delete{}, []events.Payload{events.WebhookDeleted{}}, ""},
		"deleted, is not there":   {webhook.State{Name: "w"}, webhook.Delete{}, nil, errs.NotFound},
		"a name that is none":     {webhook.State{Name: "W W"}, set(nil), nil, errs.Invalid},
		"rotated, is not there":   {webhook.State{Name: "w"}, webhook.Rotate{}, nil, errs.NotFound},
		"suspended by its setter": {there, set(suspend), []events.Payload{suspended(made)}, ""},
	} {
		got, err := webhook.Decide(c.state, c.command)
		if c.kind != "" && !errs.Is(err, c.kind) || c.kind == "" && err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func suspended(s events.WebhookSet) events.WebhookSet {
	s.Spec.Suspended = true
	return s
}

func TestEvolve(t *testing.T) {
	t.Parallel()
	s := webhook.State{Name: "w"}
	for _, p := range []events.Payload{
		events.WebhookSet{Name: "w"},
		events.WebhookSecretRotated{},
		events.WebhookReplayRequested{},
		events.WebhookDisabled{Reason: "Gone"},
	} {
		var err error
		if s, err = webhook.Evolve(s, p); err != nil || !s.Set {
			t.Fatalf("%T: %+v, %v", p, s, err)
		}
	}
	if s.Disabled != "Gone" {
		t.Errorf("%+v", s)
	}
	if s, err := webhook.Evolve(s, events.WebhookDeleted{}); err != nil || s.Set || s.Disabled != "" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := webhook.Evolve(s, events.ClusterRemoved{}); err == nil {
		t.Error("an event of another stream is folded")
	}
}

// TestSign compares with the example of Standard Webhooks' libraries; a secret that has ended signs no more.
func TestSign(t *testing.T) {
	t.Parallel()
	at := time.Unix(1614265330, 0)
	first := webhook.Secret{Value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	sign := func(list []webhook.Secret, at time.Time) string {
		return webhook.Sign(list, "msg_p5jXN8AQM9LWM0D4loKWxJek", at, []byte(`{"test": 2432232314}`))
	}
	const want = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	if got := sign([]webhook.Secret{first}, at); got != want {
		t.Errorf("signature %q", got)
	}
	next := webhook.NewSecret(make([]byte, webhook.SecretBytes))
	both := webhook.Rotated([]webhook.Secret{first, {Value: "whsec_AAAA"}}, next, at)
	if got := strings.Fields(sign(both, at)); len(got) != 2 || got[1] != want {
		t.Errorf("two signatures: %q", got)
	}
	if got := strings.Fields(sign(both, at.Add(webhook.Overlap))); len(got) != 1 {
		t.Errorf("after the overlap: %q", got)
	}
}

func TestPause(t *testing.T) {
	t.Parallel()
	var all time.Duration
	for n := 1; n < 100; n++ {
		p := webhook.Pause(n, 0, 0)
		if q := webhook.Pause(n+1, 0, 0); q < p || p <= 0 || webhook.Pause(n, 1, 0) <= p {
			t.Errorf("pause %d is %s, the next %s", n, p, q)
		}
		if all += p; all > webhook.GiveUpAfter {
			break
		}
	}
	if all <= webhook.GiveUpAfter {
		t.Errorf("100 attempts take %s", all)
	}
	if p := webhook.Pause(1, 0, time.Minute); p != time.Minute {
		t.Errorf("a receiver that asks for a minute gets %s", p)
	}
	if p := webhook.Pause(1, 0, 1000*time.Hour); p != webhook.MaxRetryAfter {
		t.Errorf("a receiver that asks for weeks gets %s", p)
	}
}

// TestOver: a message has three days, and three attempts however long it waited for others.
func TestOver(t *testing.T) {
	t.Parallel()
	since := time.Unix(1000, 0)
	for _, c := range []struct {
		after    time.Duration
		attempts int
		want     bool
	}{{webhook.GiveUpAfter, 50, false}, {webhook.GiveUpAfter + 1, 2, false}, {webhook.GiveUpAfter + 1, 3, true}} {
		if got := webhook.Over(since, since.Add(c.after), c.attempts); got != c.want {
			t.Errorf("after %s and %d attempts: %t", c.after, c.attempts, got)
		}
	}
}

const event = `{"specversion":"1.0","id":"1","type":"csv.phase-changed.v1","subject":"a/b/<c>&\u00e6 \"%","streamversion":3,` +
	`"time":"2031-02-03T12:00:00Z","data":{"phase":"Failed","reason":"Broken","list":[1]}}`

func TestEncode(t *testing.T) {
	t.Parallel()
	encode := func(target, mode, key string) webhook.Message {
		t.Helper()
		m, err := webhook.Encode(events.WebhookSpec{Target: target, Mode: mode}, key, []byte(event))
		if err != nil || !json.Valid(m.Body) {
			t.Fatalf("%s: %v, %s", target, err, m.Body)
		}
		return m
	}
	if m := encode("CloudEvents", "Structured", ""); string(m.Body) != event {
		t.Errorf("structured: %s", m.Body)
	}
	m := encode("CloudEvents", "Binary", "")
	if got := m.Header["ce-subject"]; got != "a/b/<c>&%C3%A6%20%22%25" || m.Header["ce-streamversion"] != "3" ||
		m.Header["ce-data"] != "" || string(m.Body) != `{"phase":"Failed","reason":"Broken","list":[1]}` {
		t.Errorf("binary: %v %s", m.Header, m.Body)
	}
	var chat struct{ Text string }
	if err := json.Unmarshal(encode("Slack", "", "").Body, &chat); err != nil ||
		chat.Text != "csv.phase-changed.v1 a/b/&lt;c&gt;&amp;\u00e6 \"% is Failed (Broken)" {
		t.Errorf("slack: %q, %v", chat.Text, err)
	}
	var alert struct {
		RoutingKey  string `json:"routing_key"`
		EventAction string `json:"event_action"`
		Payload     struct{ Summary, Severity, Source string }
	}
	if err := json.Unmarshal(encode("PagerDuty", "", "k3y").Body, &alert); err != nil || alert.RoutingKey != "k3y" ||
		alert.Payload.Severity != "error" || alert.EventAction != "trigger" ||
		!strings.HasSuffix(alert.Payload.Summary, "is Failed (Broken)") {
		t.Errorf("pagerduty: %+v, %v", alert, err)
	}
	lines := strings.Replace(event, "Broken", `one\r\n two\u2028three\u0007`, 1)
	m, err := webhook.Encode(events.WebhookSpec{Target: "Slack"}, "", []byte(lines))
	if err == nil {
		err = json.Unmarshal(m.Body, &chat)
	}
	if err != nil || !strings.HasSuffix(chat.Text, "is Failed (one two three)") {
		t.Errorf("a text of several lines: %q, %v", chat.Text, err)
	}
	keys := map[string]bool{}
	for _, end := range []string{"a", "b"} {
		var keyed struct {
			Key string `json:"dedup_key"`
		}
		far := strings.Replace(event, "a/b/", strings.Repeat("x", 300)+end, 1)
		m, err := webhook.Encode(events.WebhookSpec{Target: "PagerDuty"}, "k3y", []byte(far))
		if err == nil {
			err = json.Unmarshal(m.Body, &keyed)
		}
		if err != nil || keyed.Key == "" || len(keyed.Key) > 255 {
			t.Errorf("key %q, %v", keyed.Key, err)
		}
		keys[keyed.Key] = true
	}
	if len(keys) != 2 {
		t.Errorf("keys of two subjects: %v", keys)
	}
	long := strings.Replace(event, "Broken", strings.Repeat("\u00e6", 5000), 1)
	m, err = webhook.Encode(events.WebhookSpec{Target: "Slack"}, "", []byte(long))
	if err := json.Unmarshal(m.Body, &chat); err != nil || len(chat.Text) > 1000 || !strings.HasSuffix(chat.Text, "…") {
		t.Errorf("a long text has %d bytes, %v", len(chat.Text), err)
	}
	if _, err2 := webhook.Encode(events.WebhookSpec{Target: "Slack"}, "", []byte("none")); err != nil || err2 == nil {
		t.Errorf("%v; what is no event: %v", err, err2)
	}
}

func TestAddress(t *testing.T) {
	t.Parallel()
	const given = "https://events.pagerduty.com/v2/enqueue?routing_key=k3y"
	if address, key := webhook.Address("PagerDuty", given); address != "https://events.pagerduty.com/v2/enqueue" || key != "k3y" {
		t.Errorf("%q, %q", address, key)
	}
	for url, good := range map[string]bool{
		given: true, "https://chat.example.org/a": false, "http://chat.example.org": false, "": false,
		"https://a/?routing_key=k&x=" + strings.Repeat("x", webhook.MaxURL): false,
	} {
		err := webhook.CheckURL("PagerDuty", url)
		if (err == nil) != good || err != nil && strings.Contains(err.Error(), "chat.") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
