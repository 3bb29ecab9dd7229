package executorhost_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"k8s.io/client-go/rest"

	"github.com/chandler-fleet/chandler/libs/eventlog"
	"github.com/chandler-fleet/chandler/libs/events"
	kubeconfigs "github.com/chandler-fleet/chandler/libs/kubeconfig"
	"github.com/chandler-fleet/chandler/services/installer/clusteraccess"
)

const life = 10 * time.Minute

// hubToken is a token as an API server makes it, but for its signature.
func hubToken(issued time.Time) string {
	claims := fmt.Sprintf(`{"sub":%q,"iat":%d,"exp":%d}`, clusteraccess.User(clusteraccess.Hub), issued.Unix(),
		issued.Add(life).Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// roundTripper notes what a request bears.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// bearer is the token that a client of a configuration shows now.
func bearer(t *testing.T, c *rest.Config) (token string) {
	t.Helper()
	own := rest.CopyConfig(c)
	own.TLSClientConfig, own.Transport = rest.TLSClientConfig{}, roundTripper(
		func(r *http.Request) (*http.Response, error) {
			token = r.Header.Get("Authorization")
			return nil, errors.New("seen")
		})
	client, err := rest.HTTPClientFor(own)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(c.Host)
	if err == nil {
		_ = answer.Body.Close()
	}
	return token
}

func (e *env) uses(name, token string) {
	e.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		e.mu.Lock()
		target := e.targets[name]
		e.mu.Unlock()
		got := bearer(e.t, target.REST)
		if got == "Bearer "+token {
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			e.t.Fatalf("cluster %s is asked with %q, want %q", name, got, token)
		}
	}
}

// rotations are the events of a cluster that a token was followed by another one.
func (e *env) rotations(name string) (list []events.ClusterCredentialRotated) {
	e.t.Helper()
	log := eventlog.New(e.own)
	head, err := log.Latest(e.t.Context(), e.own, events.DefaultTenant, events.KindCluster, name)
	if err != nil {
		e.t.Fatal(err)
	}
	recorded, err := log.ReadStream(e.t.Context(), e.own, events.DefaultTenant, head.ID, 0)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, r := range recorded {
		if p, ok := r.Payload.(events.ClusterCredentialRotated); ok {
			list = append(list, p)
		}
	}
	return list
}

// commitmentNow is that of the stored kubeconfig.
func (e *env) commitmentNow(name string) (commitment string) {
	e.t.Helper()
	if err := e.own.QueryRow(e.t.Context(), `select commitment from gateway_api.cluster_credentials where name = $1`,
		name).Scan(&commitment); err != nil {
		e.t.Fatal(err)
	}
	return commitment
}

// fold does what the hub's consumer does with a rotation.
func (e *env) fold(name string) {
	e.t.Helper()
	e.exec(e.own, `update installer.clusters set credential = $2 where name = $1`, name, e.commitmentNow(name))
	e.host.Wake()
}

// TestTokensFollowOneAnother: at half of its life a token is followed by another one, which is stored encrypted,
// recorded, and used by the executor as it runs. A token that cannot be had, or that somebody was before, changes
// nothing; what another replica stored is taken over; what a person stored begins anew.
func TestTokensFollowOneAnother(t *testing.T) {
	t.Parallel()
	e := setup(t)
	asked := make(chan string, 10)
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer)
	e.request = func(c *rest.Config, want time.Duration) (string, clusteraccess.Token, error) {
		if want != life {
			t.Errorf("a life of %s is asked for", want)
		}
		asked <- bearer(t, c)
		a := <-answers
		token, _ := clusteraccess.Parse(a.text)
		return a.text, token, a.err
	}
	begin := time.Now()
	tokens := make([]string, 6)
	for i := range tokens {
		tokens[i] = hubToken(begin.Add(time.Duration(i) * time.Second))
	}
	e.register("east")
	e.append("east")
	e.credential("east", e.seal(e.identity.Recipient(), kubeconfig(tokens[0], "")))
	e.run()
	e.next("begin east ")
	e.uses("east", tokens[0])
	// turn lets the host ask at half of a life, and gives it an answer; what gives does comes before the answer.
	turn := func(present string, after time.Duration, gives func() (string, error)) {
		t.Helper()
		e.ahead.Add(int64(after))
		e.host.Wake()
		select {
		case got := <-asked:
			if got != "Bearer "+present {
				t.Fatalf("asked with %q, want %q", got, present)
			}
		case <-time.After(patience):
			t.Fatal("no token is asked for")
		}
		text, err := gives()
		answers <- answer{text, err}
	}
	gives := func(text string) func() (string, error) { return func() (string, error) { return text, nil } }
	first := e.commitmentNow("east")
	turn(tokens[0], life/2, gives(tokens[1]))
	e.uses("east", tokens[1])
	got := e.rotations("east")
	if len(got) != 1 || got[0].Replaces != first || got[0].Credential != e.commitmentNow("east") ||
		got[0].Expires.Unix() != begin.Add(time.Second+life).Unix() {
		t.Errorf("recorded %+v", got)
	}
	sealed, key := e.sealedNow("east")
	only := e.resealer(e.identity.String()).Identities
	if raw, err := only.Open(sealed, kubeconfigs.MaxBytes); err != nil || key != only.Active().ID.String() {
		t.Errorf("stored with key %s: %v", key, err)
	} else if c, err := kubeconfigs.Load(raw); err != nil || c.Server() != "https://127.0.0.1:1" {
		t.Errorf("what is stored cannot be used: %v", err)
	}
	e.fold("east")

	turn(tokens[1], life/2, func() (string, error) { return "", errors.New("the cluster is away") })
	turn(tokens[1], time.Minute, gives(tokens[2])) // tried again, well before the present one ends
	e.uses("east", tokens[2])
	e.fold("east")

	// Another replica was before: its token is taken over, ours is not stored.
	turn(tokens[2], life/2, func() (string, error) {
		e.stored("east", e.seal(e.identity.Recipient(), kubeconfig(tokens[4], "")))
		return tokens[3], nil
	})
	e.fold("east")
	e.uses("east", tokens[4])
	if n := len(e.rotations("east")); n != 2 {
		t.Errorf("%d rotations are recorded, want 2", n)
	}
	// So is one that a person stored, who uses another account.
	turn(tokens[4], life/2, func() (string, error) {
		e.stored("east", e.seal(e.identity.Recipient(), kubeconfig("person", "")))
		return tokens[5], nil
	})
	e.fold("east")
	e.next("end east ") // the executor that began with the first token
	e.next("begin east person")
	const call = `select gateway_api.rotate_cluster_credential('default', 'east', 'a', $1, '', 'x', '0123456789abcdef')`
	if _, err := e.gateway.Exec(t.Context(), call, got[0].Credential); err == nil {
		t.Error("the gateway's role may rotate")
	}
}

// append registers a cluster in the log.
func (e *env) append(name string) {
	e.t.Helper()
	stream := events.StreamID{
		Kind: events.KindCluster, Key: events.Key(events.DefaultTenant, events.KindCluster, name), Incarnation: 1,
	}
	m := events.Meta{
		Tenant: events.DefaultTenant, Source: events.Gateway, Command: uuid.New(), Time: time.Now(), Actor: "a",
	}
	if err := e.gateway.Tx(e.t.Context(), func(tx pgx.Tx) error {
		_, err := eventlog.New(e.gateway).Append(e.t.Context(), tx, m, stream, name, 0,
			events.ClusterRegistered{Name: name, Credential: "c1:none"})
		return err
	}); err != nil {
		e.t.Fatal(err)
	}
}
