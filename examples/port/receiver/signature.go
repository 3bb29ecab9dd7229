package receiver

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// oldest bounds how far the time of a request may be from now: who has read one cannot send it again later.
	oldest = 5 * time.Minute
	// signatureVersion stands before each signature, of Port's and of Standard Webhooks.
	signatureVersion = "v1,"
	// secretPrefix stands before a secret of Standard Webhooks.
	secretPrefix = "whsec_"
)

var (
	errTime      = errors.New("the time of the request is not within five minutes of now")
	errSignature = errors.New("no signature of the request is valid")
)

// checkPort checks a request of Port: the key is the client secret of the organization, and what is signed
// TIMESTAMP.BODY.
func checkPort(secret string, h http.Header, body []byte, now time.Time) error {
	at := h.Get("X-Port-Timestamp")
	return check([]byte(secret), at, at+".", h.Get("X-Port-Signature"), body, now)
}

// checkStandard checks a request by Standard Webhooks: what is signed is ID.TIMESTAMP.BODY. For a day after a rotation
// there are two signatures.
func checkStandard(key []byte, h http.Header, body []byte, now time.Time) error {
	at := h.Get("Webhook-Timestamp")
	return check(key, at, h.Get("Webhook-Id")+"."+at+".", h.Get("Webhook-Signature"), body, now)
}

func check(key []byte, timestamp, before, signatures string, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > oldest {
		return errTime
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(before))
	mac.Write(body)
	want := mac.Sum(nil)
	for text := range strings.FieldsSeq(signatures) {
		encoded, known := strings.CutPrefix(text, signatureVersion)
		given, err := base64.StdEncoding.DecodeString(encoded)
		if known && err == nil && hmac.Equal(given, want) { // in constant time
			return nil
		}
	}
	return errSignature
}

// standardKey is what a secret of a webhook signs with.
func standardKey(secret string) ([]byte, error) {
	encoded, known := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !known || err != nil || len(key) == 0 {
		return nil, errors.New("the secret of the webhook is none: it begins with " + secretPrefix +
			", and chandler apply shows it once")
	}
	return key, nil
}
