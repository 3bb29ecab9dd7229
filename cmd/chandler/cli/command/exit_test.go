package command

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/chandler-fleet/chandler/cmd/chandler/client"
)

func TestExitStatus(t *testing.T) {
	t.Parallel()
	problem := func(status int64) error { return &client.Problem{Status: status} }
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("a"), ExitFailed},
		{Usagef("a"), ExitUsage},
		{fmt.Errorf("sub/a: %w", problem(http.StatusNotFound)), ExitNotFound},
		{problem(http.StatusBadRequest), ExitRefused},
		{problem(http.StatusConflict), ExitRefused},
		{problem(http.StatusForbidden), ExitRefused},
		{problem(http.StatusUnprocessableEntity), ExitRefused},
		{problem(http.StatusInternalServerError), ExitFailed},
		{problem(http.StatusServiceUnavailable), ExitUnavailable},
		{errors.Join(problem(http.StatusNotFound), fmt.Errorf("b: %w", problem(http.StatusNotFound))), ExitNotFound},
		{errors.Join(problem(http.StatusNotFound), problem(http.StatusConflict)), ExitFailed},
		{Refused(problem(http.StatusNotFound)), ExitRefused},
	} {
		if got := ExitStatus(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}
