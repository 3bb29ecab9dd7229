package rpc

import (
	"bytes"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestAnswerIsToItsQuestion: an answer is signed for all that was asked: one to a question that was changed on its way
// is none to the question that was asked.
func TestAnswerIsToItsQuestion(t *testing.T) {
	t.Parallel()
	asked := func(change func(*nats.Msg)) *nats.Msg {
		m := nats.NewMsg("chandler.rpc.go-ahead.t.all")
		m.Reply, m.Data = "_INBOX.installer.go-ahead.t.all.x", []byte(`{"tenant":"t"}`)
		m.Header.Set(headerNonce, "n")
		change(m)
		return m
	}
	answer := &nats.Msg{Header: nats.Header{}, Data: []byte(`{}`)}
	want := answerText(asked(func(*nats.Msg) {}), answer)
	for name, change := range map[string]func(*nats.Msg){
		"content":    func(m *nats.Msg) { m.Data = []byte(`{"tenant":"u"}`) },
		"subject":    func(m *nats.Msg) { m.Subject = "chandler.rpc.go-ahead.u.all" },
		"reply":      func(m *nats.Msg) { m.Reply += "y" },
		"nonce":      func(m *nats.Msg) { m.Header.Set(headerNonce, "o") },
		"encoding":   func(m *nats.Msg) { m.Header.Set(headerEncoding, "gzip") },
		"line break": func(m *nats.Msg) { m.Subject, m.Reply = m.Subject+"\n"+m.Reply, "" },
	} {
		if bytes.Equal(answerText(asked(change), answer), want) {
			t.Errorf("the answer to a question with another %s is signed by the same text", name)
		}
	}
}
