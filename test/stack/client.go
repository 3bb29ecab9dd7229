package stack

import "github.com/chandler-fleet/chandler/test/internal/api"

// Client speaks to the API as a portal does.
type Client = api.Client

// RefusedError is an answer that is not a success.
type RefusedError = api.RefusedError

// NewClient returns a client of the API at this address.
func NewClient(address, token string) Client { return api.New(address, token) }

// Client returns a client of the stack with the administrator's token.
func (s *Stack) Client() Client { return NewClient(s.URL(), s.Token()) }
