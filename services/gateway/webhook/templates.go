package webhook

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// maxText bounds what a person is shown of an event: the summary of PagerDuty has 1,024 characters, and more than that
// nobody reads in a chat.
const maxText = 1000

// maxDedupKey bounds the key by which PagerDuty knows alerts of the same thing; it refuses longer ones.
const maxDedupKey = 255

// line says in one line what happened. Names come from others: mark is how the target keeps them from being read as
// anything but text.
const line = `{{mark .Type}}{{with .Subject}} {{mark .}}{{end}}` +
	`{{with .Data.phase}} is {{mark .}}{{end}}{{with .Data.reason}} ({{mark .}}){{end}}` +
	`{{with .Data.version}}, version {{mark .}}{{end}}{{with .Data.message}}: {{mark .}}{{end}}`

// templates are parsed once; what they are given is data.
var (
	slackLine = parsed("slack", strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace)
	plainLine = parsed("plain", func(s string) string { return s })
)

func parsed(name string, escape func(string) string) *template.Template {
	mark := func(v any) string {
		s, ok := v.(string)
		if !ok {
			return ""
		}
		return escape(oneLine(s))
	}
	return template.Must(template.New(name).Funcs(template.FuncMap{"mark": mark}).Option("missingkey=zero").Parse(line))
}

// shown is an event as templates read it.
type shown struct {
	model.Event

	Data map[string]any
}

func text(t *template.Template, event []byte) (shown, string, error) {
	var s shown
	if err := json.Unmarshal(event, &s.Event); err != nil {
		return s, "", errs.Wrap(errs.Internal, err, "read an event")
	}
	if err := json.Unmarshal(s.Event.Data, &s.Data); err != nil {
		s.Data = nil // data that is no object is not shown
	}
	var b bytes.Buffer
	if err := t.Execute(&b, s); err != nil {
		return s, "", errs.Wrap(errs.Internal, err, "write an event for people")
	}
	return s, cut(b.String()), nil
}

// oneLine keeps a name or a message from being read as lines of its own.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool {
		return r == ' ' || unicode.IsControl(r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r)
	}), " ")
}

// dedupKey is the same for the same thing, and for nothing else: what is too long is named by its digest.
func dedupKey(about string) string {
	if len(about) <= maxDedupKey {
		return about
	}
	sum := sha256.Sum256([]byte(about))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// cut shortens a text between two characters.
func cut(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText - len("…")
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

// slack writes what incoming webhooks of Slack, and of chats that follow it, take.
func slack(event []byte) (Message, error) {
	_, says, err := text(slackLine, event)
	if err != nil {
		return Message{}, err
	}
	body, err := json.Marshal(map[string]string{"text": says})
	return message("application/json", body), errs.Wrap(errs.Internal, err, "write a message")
}

// pagerDuty writes an alert of the Events API v2.
func pagerDuty(key string, event []byte) (Message, error) {
	s, says, err := text(plainLine, event)
	if err != nil {
		return Message{}, err
	}
	body, err := json.Marshal(map[string]any{
		RoutingKey: key, "event_action": "trigger", "dedup_key": dedupKey(s.Type + " " + s.Subject),
		"payload": map[string]any{
			"summary": says, "source": s.Subject, "severity": severity(s), "timestamp": s.Time,
			"custom_details": json.RawMessage(event),
		},
	})
	return message("application/json", body), errs.Wrap(errs.Internal, err, "write an alert")
}

// severity is how loud an alert is: what failed is an error, all else is for information.
func severity(s shown) string {
	phase, _ := s.Data["phase"].(string)
	if strings.Contains(s.Type, "failed") || strings.Contains(s.Type, "blocked") || phase == "Failed" {
		return "error"
	}
	return "info"
}
