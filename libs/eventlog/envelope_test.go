package eventlog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Whatever an envelope holds, the fast reader says what encoding/json says, or nothing.
func TestReadEnvelopeIsJSON(t *testing.T) {
	t.Parallel()
	fast := 0
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z0-9./:_-]{0,20}`)
		if rapid.Bool().Draw(t, "wild") {
			word = rapid.String()
		}
		e := events.Envelope{
			SpecVersion: "1.0", ID: uuid.NewString(), Source: word.Draw(t, "source"),
			Type: events.Type(word.Draw(t, "type")), Subject: word.Draw(t, "subject"),
			Time: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"),
				rapid.Int64Range(0, 999_999_999).Draw(t, "nanos")).UTC(), Tenant: word.Draw(t, "tenant"),
			Stream: word.Draw(t, "stream"), Version: rapid.Int64Min(-1).Draw(t, "version"),
			Correlation: word.Draw(t, "correlation"), Causation: word.Draw(t, "causation"),
			TraceParent: word.Draw(t, "trace"), Actor: word.Draw(t, "actor"),
		}
		var err error
		if e.Data, err = json.Marshal(map[string]string{"name": word.Draw(t, "data")}); err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var want, got events.Envelope
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatal(err)
		}
		if !readEnvelope(body, &got) {
			return
		}
		fast++
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n(-json +fast):\n%s", body, diff)
		}
	})
	if fast == 0 {
		t.Error("the fast reader read nothing")
	}
}

// What it has not been written for it leaves to encoding/json; what Append writes it reads.
func TestReadEnvelopeForms(t *testing.T) {
	t.Parallel()
	m := events.Meta{
		Tenant: "default", Source: events.Gateway, Command: uuid.New(), Correlation: "c", Actor: "a",
		Time: time.Now(),
	}
	s := events.StreamID{Kind: events.KindCluster, Key: uuid.New(), Incarnation: 1}
	e, err := events.Seal(m, s, "east", 12, 0, events.ClusterRegistered{Name: "east"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	body := string(raw)
	head, _, _ := strings.Cut(body, `,"data"`)
	if !readEnvelope(raw, &events.Envelope{}) {
		t.Fatalf("it does not read %s", body)
	}
	for name, other := range map[string]string{
		"empty":           "",
		"a blank":         strings.Replace(body, `,"id"`, `, "id"`, 1),
		"another order":   strings.Replace(strings.Replace(body, `"tenant"`, `"x"`, 1), `"stream"`, `"tenant"`, 1),
		"a leading zero":  strings.Replace(body, `"streamversion":12`, `"streamversion":012`, 1),
		"a large number":  strings.Replace(body, `"streamversion":12`, `"streamversion":9223372036854775807`, 1),
		"a wrong time":    strings.Replace(body, `"time":"2`, `"time":"x`, 1),
		"cut off":         body[:len(body)-1],
		"cut in a string": body[:30],
		"without data":    head + "}",
	} {
		if readEnvelope([]byte(other), &events.Envelope{}) {
			t.Errorf("%s: it reads %s", name, other)
		}
	}
}
