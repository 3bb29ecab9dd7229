package command

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/chandler-fleet/chandler/cmd/chandler/author"
	"github.com/chandler-fleet/chandler/cmd/chandler/client"
	"github.com/chandler-fleet/chandler/libs/errs"
)

// Exit statuses beside 0, the same for all commands. Pipelines gate on 3 to 6. Scripts tell by the others whether it is
// worth to try again (8), to look at the input (2, 4) or at the name (7).
const (
	ExitFailed      = 1
	ExitUsage       = 2
	ExitDiffers     = author.ExitDiffers
	ExitRefused     = 4
	ExitWaiting     = 5
	ExitTimedOut    = 6
	ExitNotFound    = 7
	ExitUnavailable = 8
)

// Usagef is an error of the command line itself.
func Usagef(format string, args ...any) error {
	return &author.ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// BadFlags is an error of flags that say something together, unless a file that they name cannot be read.
func BadFlags(err error) error {
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return Usagef("%w", err)
}

// Refused is an error of the input, or what did not come out; nil stays nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return &author.ExitError{Code: ExitRefused, Err: err}
}

// ExitStatus is the status of an error. Several errors of one status have that one.
func ExitStatus(err error) int {
	switch e := err.(type) { //nolint:errorlint // each link of the chain is looked at by itself, the outermost decides
	case *author.ExitError:
		return e.Code
	case *client.Problem:
		return problemStatus(int(e.Status))
	case *client.UnreachableError:
		return ExitUnavailable
	case *errs.Error:
		return kindStatus(e.Kind)
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		status := ExitStatus(all[0])
		for _, other := range all[1:] {
			if ExitStatus(other) != status {
				return ExitFailed
			}
		}
		return status
	}
	if inner := errors.Unwrap(err); inner != nil {
		return ExitStatus(inner)
	}
	return ExitFailed
}

// kindStatus is the status of an error of a part that the command works with itself, such as the database.
func kindStatus(k errs.Kind) int {
	switch k {
	case errs.NotFound:
		return ExitNotFound
	case errs.Unavailable:
		return ExitUnavailable
	case errs.Invalid, errs.Unprocessable, errs.TooLarge, errs.Unauthenticated, errs.Forbidden, errs.AlreadyExists,
		errs.Conflict:
		return ExitRefused
	case errs.Internal:
	}
	return ExitFailed
}

func problemStatus(status int) int {
	switch {
	case status == http.StatusNotFound:
		return ExitNotFound
	case status == http.StatusServiceUnavailable, status == http.StatusGatewayTimeout, status == http.StatusBadGateway,
		status == http.StatusTooManyRequests:
		return ExitUnavailable
	case status < http.StatusInternalServerError:
		return ExitRefused
	}
	return ExitFailed
}

// Refusedf is an error of what the present state forbids.
func Refusedf(format string, args ...any) error {
	return &author.ExitError{Code: ExitRefused, Err: fmt.Errorf(format, args...)}
}
