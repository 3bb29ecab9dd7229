package pg

import (
	"net"
	"time"
)

// How a connection notices that its server is gone without a word: a host that lost power, a fail-over behind a black
// hole. Without these the kernel waits for a quarter of an hour.
const (
	// connectTimeout bounds the way to a server that answers, with the start of the session.
	connectTimeout = 10 * time.Second
	// userTimeout is how long what was sent may stay without an acknowledgement (TCP_USER_TIMEOUT, Linux).
	userTimeout = 15 * time.Second
	// keepIdle, keepEvery and keepCount have a connection that is silent asked after 5 s, and given up 15 s later.
	keepIdle  = 5 * time.Second
	keepEvery = 5 * time.Second
	keepCount = 3
	// pingTimeout bounds the question whether a connection that was idle still lives, which a pool asks before it hands
	// it out.
	pingTimeout = 3 * time.Second
)

// dialer opens connections that notice a silent end.
func dialer() *net.Dialer {
	return &net.Dialer{
		Timeout: connectTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepIdle, Interval: keepEvery, Count: keepCount,
		},
		Control: control,
	}
}
