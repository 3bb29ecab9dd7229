package natsconn_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/chandler-fleet/chandler/libs/bus/natslocal"
	"github.com/chandler-fleet/chandler/libs/natsconn"
	"github.com/chandler-fleet/chandler/libs/tunneltest"
)

// A server that is gone without a word, with everything acknowledged, is left within Silence.
func TestSilentServerIsLeft(t *testing.T) {
	t.Parallel()
	srv, err := natslocal.Start(t.Context(), natslocal.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Stop)
	tunnel := tunneltest.New(t, "tcp", strings.TrimPrefix(srv.URL(), "nats://"))
	options, err := (&natsconn.Settings{}).Options()
	if err != nil {
		t.Fatal(err)
	}
	left := make(chan error, 1)
	nc, err := nats.Connect("nats://"+tunnel.Address(), append(options, nats.NoReconnect(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { left <- err }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	tunnel.Swallow()
	select {
	case err := <-left:
		t.Logf("left: %v", err)
	case <-time.After(2 * natsconn.Silence): // twice, for a machine with other work
		t.Errorf("the server has been silent for %s, and the connection is still kept", 2*natsconn.Silence)
	}
}
