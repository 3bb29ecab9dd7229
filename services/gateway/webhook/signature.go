package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
)

// Headers of Standard Webhooks.
const (
	HeaderID        = "webhook-id"
	HeaderTimestamp = "webhook-timestamp"
	HeaderSignature = "webhook-signature"
)

// SecretBytes is how many random bytes a secret has: Standard Webhooks wants 24 to 64.
const SecretBytes = 32

// secretPrefix tells such secrets from others, for people and for programs that look for leaked ones.
const secretPrefix = "whsec_"

// Secret is what signs messages, as it was shown once, and until when; zero is without an end.
type Secret struct {
	Value string    `json:"value"`
	Until time.Time `json:"until,omitzero"`
}

// NewSecret makes a secret of random bytes.
func NewSecret(random []byte) Secret {
	return Secret{Value: secretPrefix + base64.StdEncoding.EncodeToString(random)}
}

// Rotated are the secrets after a new one took the place of the first, which ends with the overlap. What was on its way
// out is gone: two signatures are what receivers expect.
func Rotated(list []Secret, next Secret, now time.Time) []Secret {
	if len(list) == 0 {
		return []Secret{next}
	}
	before := list[0]
	before.Until = now.Add(Overlap)
	return []Secret{next, before}
}

// Sign returns the header webhook-signature: one signature for each secret that holds, with spaces.
func Sign(list []Secret, id string, at time.Time, body []byte) string {
	var out []string
	for _, s := range list {
		if !s.Until.IsZero() && !at.Before(s.Until) {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s.Value, secretPrefix))
		if err != nil {
			continue // none that NewSecret has made
		}
		mac := hmac.New(sha256.New, key)
		mac.Write(slices.Concat([]byte(id+"."+strconv.FormatInt(at.Unix(), 10)+"."), body))
		out = append(out, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(out, " ")
}

// MessageID is the webhook-id of an event for a webhook: the same whenever and by whomever it is sent again.
func MessageID(stream events.StreamID, event string) string {
	return "msg_" + strings.ReplaceAll(uuid.NewSHA1(stream.UUID(), []byte(event)).String(), "-", "")
}

// Sealed is what stands outside of the log, sealed: the address, with the salt of its commitment, and what signs.
type Sealed struct {
	URL     string   `json:"url"`
	Salt    []byte   `json:"salt"`
	Secrets []Secret `json:"secrets"`
}
