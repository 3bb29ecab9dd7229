package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chandler-fleet/chandler/libs/client"
)

var now = time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)

// secondsAt is a time as headers have it, so many seconds from now.
func secondsAt(seconds int64) string { return strconv.FormatInt(now.Unix()+seconds, 10) }

func signed(key, text string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// TestSignatures: a request is taken if the secret has signed its very bytes within five minutes of now, Port's and
// Chandler's; nothing else is (the section 3: a Port-style webhook example).
func TestSignatures(t *testing.T) {
	t.Parallel()
	const secret, body = "client secret", `{"run": "r_1"}`
	at, old, late := secondsAt(0), secondsAt(-301), secondsAt(301)
	good := signed(secret, at+"."+body)
	for name, c := range map[string]struct {
		at, signature, body string
		want                error
	}{
		"signed":             {at, good, body, nil},
		"another beside it":  {at, "v1,AAAA v2,x " + good, body, nil},
		"not the body":       {at, good, body + " ", errSignature},
		"another secret":     {at, signed("other", at+"."+body), body, errSignature},
		"without a version":  {at, strings.TrimPrefix(good, "v1,"), body, errSignature},
		"without one":        {at, "", body, errSignature},
		"an old one":         {old, signed(secret, old+"."+body), body, errTime},
		"one of later":       {late, signed(secret, late+"."+body), body, errTime},
		"without a time":     {"", signed(secret, "."+body), body, errTime},
		"the time of others": {secondsAt(-1), good, body, errSignature},
	} {
		h := http.Header{}
		h.Set("X-Port-Timestamp", c.at)
		h.Set("X-Port-Signature", c.signature)
		if err := checkPort(secret, h, []byte(c.body), now); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		h.Set("Webhook-Id", "msg_1")
		h.Set("Webhook-Timestamp", c.at)
		h.Set("Webhook-Signature", c.signature)
		if err := checkStandard([]byte(secret), h, []byte(c.body), now); err == nil {
			t.Errorf("%s: a signature without the id of the message is taken", name)
		}
	}
	h := http.Header{"Webhook-Id": {"msg_1"}, "Webhook-Timestamp": {at}}
	h.Set("Webhook-Signature", signed("old", "msg_1."+at+"."+body)+" "+signed(secret, "msg_1."+at+"."+body))
	if err := checkStandard([]byte(secret), h, []byte(body), now); err != nil {
		t.Errorf("after a rotation: %v", err)
	}
	for _, wrong := range []string{"", "secret", "whsec_", "whsec_*"} {
		if _, err := standardKey(wrong); err == nil {
			t.Errorf("%q is taken for a secret", wrong)
		}
	}
}

// TestReports: a run goes on until the operation is over, and says for what it waits.
func TestReports(t *testing.T) {
	t.Parallel()
	s := client.Subscription{Cluster: "east", Namespace: "tides", Name: "gauge"}
	s.Status.InstalledCSV = "tidegauge.v1.1.0"
	r := &receiver{Config: Config{Pages: "https://chandler.example.com/"}}
	for state, want := range map[client.OperationState]report{
		client.OperationStateRunning:            {StatusLabel: "Why"},
		client.OperationStateWaitingForApproval: {StatusLabel: "waits for an approval in Chandler"},
		client.OperationStateSucceeded:          {Status: "SUCCESS", StatusLabel: "tidegauge.v1.1.0 runs"},
		client.OperationStateFailed:             {Status: "FAILURE", StatusLabel: "Failed: Why"},
		client.OperationStateSuperseded:         {Status: "FAILURE", StatusLabel: "Superseded: Why"},
	} {
		want.Link = "https://chandler.example.com/go/subscription/east/tides/gauge"
		over := want.Status != ""
		if got := r.reportOf(s, client.Operation{State: state, Reason: "Why", Over: over}); got != want {
			t.Errorf("%s: %+v, want %+v", state, got, want)
		}
	}
}
