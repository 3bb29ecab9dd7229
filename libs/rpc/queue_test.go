package rpc

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// asking is a question of the agent of a cluster, or of the installer.
func asking(cluster, data string) *nats.Msg {
	m := nats.NewMsg("chandler.rpc.content.t." + cluster)
	m.Reply, m.Data = "_INBOX.agent."+cluster+".content.t."+cluster+".x", []byte(data)
	if cluster == "all" {
		m.Reply = "_INBOX.installer.content.t.all.x"
	}
	return m
}

// TestOneAskerKeepsNobodyWaiting: however much one agent asks, another's question is the next but one; each has its
// bound of what is under way, and nobody is worked for who has stopped waiting.
func TestOneAskerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	q := newQueue(Limits{Parallel: 4, AtOnce: 2})
	taken := 0
	for range 10 * maxWaiting {
		if q.offer(asking("loud", ""), now) == "" {
			taken++
		}
	}
	if taken != maxWaiting {
		t.Errorf("%d questions of one asker wait, want %d", taken, maxWaiting)
	}
	for _, quiet := range []string{"one", "two"} {
		if refused := q.offer(asking(quiet, ""), now); refused != "" {
			t.Errorf("%s is refused: %s", quiet, refused)
		}
	}
	var order []string
	for {
		_, asker, late, ok := q.next(now)
		if late != 0 {
			t.Errorf("%d are late", late)
		}
		if !ok {
			break
		}
		order = append(order, asker)
	}
	if got := strings.Join(order, " "); got != "agent-loud agent-one agent-two agent-loud" {
		t.Errorf("worked on in the order %s", got)
	}
	q.done("agent-one")
	if _, asker, _, ok := q.next(now); ok {
		t.Errorf("%s has a third question under way", asker)
	}
	// Nobody waits for the rest any more.
	q.done("agent-loud")
	if it, _, late, ok := q.next(now.Add(timeout)); ok || late != maxWaiting-2 {
		t.Errorf("after the timeout %v is worked on, %d are late", it, late)
	}
	soon := asking("one", "")
	soon.Header.Set(headerTimeout, "3000")
	if refused := q.offer(soon, now); refused != "" {
		t.Error(refused)
	}
	if _, _, late, ok := q.next(now.Add(3 * time.Second)); ok || late != 1 {
		t.Error("who waits three seconds is answered later")
	}
}

// TestQuestionsAreBounded: by their size and packing before anything reads them, and in number for each agent; a
// service, which asks for all, is not bounded by the number of agents' questions.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2031, 2, 3, 4, 5, 6, 0, time.UTC)
	q := newQueue(Limits{Bytes: 10, Every: time.Second, Burst: 3})
	packed := asking("one", "")
	packed.Header.Set(headerEncoding, "gzip")
	stranger := asking("one", "")
	stranger.Reply = asking("two", "").Reply
	for name, m := range map[string]*nats.Msg{
		"packed": packed, "too large": asking("one", strings.Repeat("a", 11)), "another's inbox": stranger,
	} {
		if q.offer(m, now) == "" {
			t.Errorf("a question that is %s is taken", name)
		}
	}
	count := func(cluster string, at time.Time) (n int) {
		for range 10 {
			if q.offer(asking(cluster, ""), at) == "" {
				n++
			}
		}
		return n
	}
	got := fmt.Sprint(count("one", now), count("one", now), count("two", now), count("all", now),
		count("one", now.Add(time.Second)), count("one", now.Add(time.Hour)))
	if want := "3 0 3 10 1 3"; got != want {
		t.Errorf("taken: %s, want %s", got, want)
	}
	large := newQueue(Limits{})
	for range 3 * maxWaitingBytes >> 20 {
		large.offer(asking("one", strings.Repeat("a", 1<<20)), now)
	}
	if n := large.lines["agent-one"].bytes; n > maxWaitingBytes {
		t.Errorf("%d bytes wait", n)
	}
	if large.forget(now.Add(time.Hour)) || len(large.lines) != 1 {
		t.Error("an asker is forgotten whose questions wait")
	}
}
