package reach

import (
	"net/netip"
	"net/url"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// maxRedirects is how often somebody who is asked may send on to another address.
const maxRedirects = 3

// SafeURL refuses an address that somebody in between could answer for, which is plain HTTP, but on this machine, and
// what is no address of HTTP at all.
func SafeURL(given string) error {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.User != nil {
		return errs.New(errs.Invalid, "%q is no address such as https://login.example.org", given)
	}
	host := u.Hostname()
	ip, _ := netip.ParseAddr(host)
	if u.Scheme != "https" && (u.Scheme != "http" || host != "localhost" && !ip.IsLoopback()) {
		return errs.New(errs.Invalid, "%q is not https", given)
	}
	return nil
}

// SafeRedirect refuses to be sent on to an address that is not safe, or once more after so many.
func SafeRedirect(to *url.URL, before int) error {
	if before > maxRedirects {
		return errs.New(errs.Unavailable, "it sends on more than %d times", maxRedirects)
	}
	return SafeURL(to.Scheme + "://" + to.Host)
}
