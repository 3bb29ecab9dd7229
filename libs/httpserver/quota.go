package httpserver

import (
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
)

// Headers that say what a client may still ask for, by the IETF's draft, as Go writes the names of headers.
const (
	headerLimit     = "Ratelimit-Limit"
	headerRemaining = "Ratelimit-Remaining"
	headerReset     = "Ratelimit-Reset"
	headerPolicy    = "Ratelimit-Policy"
)

// Quota is what somebody may ask for: Limit requests at once, of which so many are left.
type Quota struct {
	Limit, Remaining int
	// Window is how long it takes until an empty quota is full again, Reset until this one is.
	Window, Reset time.Duration
	// Wait is how long it takes until there is one request left; zero where there is.
	Wait time.Duration
	// Policy is the name of the limit; "" where it has none.
	Policy string
}

// Write says what is left.
func (q Quota) Write(h http.Header) {
	limit := strconv.Itoa(q.Limit)
	h.Set(headerLimit, limit)
	h.Set(headerRemaining, strconv.Itoa(q.Remaining))
	h.Set(headerReset, strconv.Itoa(seconds(q.Reset)))
	policy := limit + ";w=" + strconv.Itoa(seconds(q.Window))
	if q.Policy != "" {
		policy += `;name="` + q.Policy + `"`
	}
	h.Set(headerPolicy, policy)
}

// TooMany answers a request that is one too many with status 429, and says after how long to come again.
func TooMany(w http.ResponseWriter, r *http.Request, q Quota, text string) {
	err := errs.New(errs.Unavailable, "%s", text)
	p := Details(err)
	p.typed(http.StatusTooManyRequests)
	p.Detail = text
	q.Write(w.Header())
	w.Header().Set("Retry-After", strconv.Itoa(max(1, seconds(q.Wait))))
	write(w, r, err, p)
}

// seconds are whole ones, and not fewer than it takes.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }
