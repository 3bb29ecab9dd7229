package pg_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/chandler-fleet/chandler/libs/pg"
	"github.com/chandler-fleet/chandler/libs/pg/pgtest"
	"github.com/chandler-fleet/chandler/libs/tunneltest"
)

// What was sent and is not acknowledged ends a connection after 15 seconds, not after a quarter of an hour; and in the
// server statements and waits for locks end by themselves.
func TestConnectionsNoticeSilence(t *testing.T) {
	t.Parallel()
	_, through := tunneltest.Database(t, pgtest.DB(t).URL("resolver"))
	pool, err := pg.Open(t.Context(), through)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if tcp, ok := conn.Conn().PgConn().Conn().(*net.TCPConn); ok {
		raw, err := tcp.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		const userTimeout = 18 // TCP_USER_TIMEOUT
		for name, o := range map[string]struct{ option, want int }{
			"TCP_USER_TIMEOUT": {userTimeout, 15000}, "TCP_KEEPIDLE": {syscall.TCP_KEEPIDLE, 5},
			"TCP_KEEPINTVL": {syscall.TCP_KEEPINTVL, 5}, "TCP_KEEPCNT": {syscall.TCP_KEEPCNT, 3},
		} {
			var got int
			var failed error
			err := raw.Control(func(fd uintptr) {
				got, failed = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, o.option)
			})
			if err != nil || failed != nil || got != o.want {
				t.Errorf("%s is %d, want %d (%v %v)", name, got, o.want, err, failed)
			}
		}
	} else {
		t.Errorf("the test instance is not reached by TCP but by %T", conn.Conn().PgConn().Conn())
	}
	for name, want := range map[string]string{
		"statement_timeout": "1min", "lock_timeout": "30s", "idle_in_transaction_session_timeout": "1min",
	} {
		var got string
		if err := conn.QueryRow(t.Context(), "select current_setting($1)", name).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
		}
	}
}
