package limit

import (
	"net/http"
	"time"

	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
)

// Class is a kind of request whose limit is its own: who lists without pause can still write, and stop effects.
type Class string

// The classes of requests.
const (
	Read   Class = "read"    // of one object
	List   Class = "list"    // reads many rows or has another service compute: lists, searches, explanations, previews
	Write  Class = "write"   // what changes something
	SignIn Class = "sign-in" // what lets somebody in
)

// Classes are all of them, with the share that each has of the setting request-rate.
var Classes = []struct {
	Name  Class
	Share float64
}{
	{Read, 1},
	// A list costs some times what a read costs: as many of them would take the database from the others.
	{List, 0.5},
	// A write costs an event, which all services read: a log is filled by it for good.
	{Write, 0.5},
	// Nobody needs more than a few tokens, tickets or sessions; each is stored.
	{SignIn, 0.05},
}

// byVerb are the classes of verbs. A verb of a rule that no operation bears has none.
var byVerb = map[access.Verb]Class{
	access.Get: Read, access.List: List, access.Watch: List,
	access.Create: Write, access.Update: Write, access.Delete: Write, access.Approve: Write, access.Reject: Write,
	access.Comment: Write, access.Rollback: Write, access.Refresh: Write, access.Stop: Write, access.Resume: Write,
	access.Escalate: Write, access.Bind: Write, access.Override: Write,
}

// ClassOf is the class of an operation that needs a verb, where it says no other. It is "" for a verb that has none,
// and for a request that changes something although its verb reads.
func ClassOf(method string, v access.Verb) Class {
	class := byVerb[v]
	if reads := class == Read || class == List; reads && method != http.MethodGet {
		return ""
	}
	return class
}

// Rates count requests by class and key.
type Rates struct{ classes map[Class]*Buckets }

// NewRates lets through rate reads a second for each key, of other classes their share, and so many seconds' worth of
// them at once.
func NewRates(rate, seconds float64, now func() time.Time) *Rates {
	r := &Rates{classes: map[Class]*Buckets{}}
	for _, c := range Classes {
		b := NewBuckets(0, 0, now)
		b.class = c.Name
		r.classes[c.Name] = b
	}
	r.set(rate, seconds)
	return r
}

// set changes the rate. What was asked for before still counts.
func (r *Rates) set(rate, seconds float64) {
	for _, c := range Classes {
		share := max(1, c.Share*rate)
		r.classes[c.Name].set(share, seconds*share)
	}
}

// Take takes one request of a class, where there is one.
func (r *Rates) Take(c Class, key string) (httpserver.Quota, bool) { return r.classes[c].Take(key) }

// Empty reports whether nothing of a class is left, and takes nothing.
func (r *Rates) Empty(c Class, key string) (httpserver.Quota, bool) { return r.classes[c].Empty(key) }
