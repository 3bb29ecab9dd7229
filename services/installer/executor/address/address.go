// Package address keeps what a kubeconfig names from leading to where only this machine or its link leads.
package address

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/chandler-fleet/chandler/libs/reach"
)

// Those of client-go's own dialer.
const (
	timeout   = 30 * time.Second
	keepAlive = 30 * time.Second
)

// RefusedError is an address at which no cluster is asked.
type RefusedError struct {
	Address string
	Reach   reach.Reach
}

func (e RefusedError) Error() string {
	hint := ""
	if e.Reach == reach.Machine {
		hint = " (the setting clusters-on-this-machine allows it)"
	}
	return fmt.Sprintf("the server of the kubeconfig is at %s, %s: it is not asked%s", e.Address, e.Reach, hint)
}

// IsRefused reports a cluster whose address is refused.
func IsRefused(err error) bool {
	_, ok := errors.AsType[RefusedError](err)
	return ok
}

// Dial connects to the API servers of clusters that others registered. Who registers one is the administrator of a
// tenant, and must not have this process ask what only its machine or its link reaches, where clouds keep credentials.
// A cluster on this machine is allowed by local. The address that is dialed is judged, after its name was resolved.
func Dial(local bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	d := Dialer()
	d.Control = func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if r := reach.Of(at.Addr()); r == reach.Link || r == reach.Machine && !local {
			return RefusedError{Address: at.String(), Reach: r}
		}
		return nil
	}
	return d.DialContext
}

// Dialer connects to API servers wherever they are.
func Dialer() *net.Dialer { return &net.Dialer{Timeout: timeout, KeepAlive: keepAlive} }
