package api

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/httpserver"
	"github.com/chandler-fleet/chandler/services/gateway/access"
	"github.com/chandler-fleet/chandler/services/gateway/internal/authn"
	"github.com/chandler-fleet/chandler/services/gateway/internal/intent/identities"
	"github.com/chandler-fleet/chandler/services/gateway/internal/limit"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tagQuotas = "Quotas"

// TenantPath is a tenant in a path.
type TenantPath struct {
	Tenant string `path:"tenant" maxLength:"63" pattern:"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$" patternDescription:"a DNS-1123 label" doc:"Name of the tenant"`
}

// quotaHandlers are the operations on quotas of tenants.
type quotaHandlers struct{ Deps }

func (h quotaHandlers) register(a *API) {
	register(a, fleetWide(access.List, access.Quotas), operation(http.MethodGet, "/quotas", "list-quotas", tagQuotas,
		"List the quotas of tenants, with what they have: all of them for the tenant of the installation; else one's own"),
		h.list)
	register(a, fleetWide(access.Get, access.Quotas),
		operation(http.MethodGet, "/quotas/{tenant}", "get-quota", tagQuotas, "Get the quota of a tenant, with what it has"),
		h.get)
	set := operation(http.MethodPut, "/quotas/{tenant}", "set-quota", tagQuotas,
		"Set what a tenant may have and ask for at most; for administrators of the installation")
	set.Description = "All bounds are replaced. What stands above a lowered bound stays; nothing more is made until " +
		"there is room. Making more subscriptions or catalogs than allowed is answered 403 with the rule quota; more " +
		"requests or streams 429."
	register(a, fleetWide(access.Update, access.Quotas), set, h.set)
}

func (h quotaHandlers) list(ctx context.Context, who model.Caller, _ *struct{}) (*listOutput[model.Quota], error) {
	items, err := h.Quotas.List(ctx, who)
	return listed(items, nil, err)
}

func (h quotaHandlers) get(ctx context.Context, who model.Caller, in *TenantPath) (*output[model.Quota], error) {
	return read(h.Quotas.Get(ctx, who, in.Tenant))
}

type setQuotaInput struct {
	TenantPath
	MakeHeaders
	Body model.SetQuota
}

func (h quotaHandlers) set(ctx context.Context, who model.Caller, in *setQuotaInput) (*written[model.Quota], error) {
	q, err := h.Quotas.Set(ctx, who, in.Tenant, in.Body.Hard)
	return wrote(q, q.Position, "", err)
}

// ofTenant counts a request for the tenant as well, and returns what is left of the tighter limit. The break-glass
// token is not held to it: whoever uses up the requests of a tenant must not keep out who is to end that.
func (a *API) ofTenant(who model.Caller, c limit.Class, left httpserver.Quota) (httpserver.Quota, bool) {
	all, bounded, ok := a.tenants.Take(who.Tenant, c)
	if !bounded || who.BreakGlass {
		return left, true
	}
	if !ok || all.Remaining < left.Remaining {
		left = all
	}
	return left, ok
}

// countsOf counts for tenants. Where only the document is wanted, nobody is bounded.
func countsOf(d Deps) *limit.Tenants {
	if d.Tenants == nil {
		return NewTenants(time.Now)
	}
	return d.Tenants
}

// NewTenants counts for tenants as requests of one identity are counted.
func NewTenants(now func() time.Time) *limit.Tenants { return limit.NewTenants(requestBurst, now) }

// before says whether a request may cost a look at the database, as far as it is known without one whose it is.
func (a *API) before(b bearing, c limit.Class, token string) (left httpserver.Quota, ok bool) {
	if left, ok = a.limits.before(b, c); !ok || !b.good || strings.HasPrefix(token, model.BreakGlassMark) {
		return left, ok
	}
	tenant, _, _ := strings.Cut(b.who, "\x00")
	left, empty := a.tenants.Empty(tenant, c)
	return left, !empty
}

// Limits bound what one identity, address or process asks for. Zero values are the defaults.
type Limits struct {
	RequestRate int // reads of one identity a second, over a time; other classes have their share (limit.Classes)
	RefusedRate int // requests of one address a second that bring no good token
	Streams     int // open streams of this process
	OwnStreams  int // of one identity
}

func (l Limits) orDefaults() Limits {
	return Limits{
		RequestRate: cmp.Or(l.RequestRate, DefaultRequestRate), RefusedRate: cmp.Or(l.RefusedRate, DefaultRefusedRate),
		Streams: cmp.Or(l.Streams, DefaultStreams), OwnStreams: cmp.Or(l.OwnStreams, DefaultOwnStreams),
	}
}

// Check refuses limits that would let nobody in, or one identity take all places.
func (l Limits) Check() error {
	l = l.orDefaults()
	for _, one := range []struct {
		name  string
		value int
	}{
		{"request-rate", l.RequestRate},
		{"refused-rate", l.RefusedRate},
		{"streams", l.Streams},
		{"own-streams", l.OwnStreams},
	} {
		if one.value < 1 || one.value > maxLimit {
			return errs.New(errs.Invalid, "setting %s is %d; give 1 to %d", one.name, one.value, maxLimit).
				At(one.name, "")
		}
	}
	if l.OwnStreams > l.Streams {
		return errs.New(errs.Invalid, "setting own-streams is %d, and there are %d streams in all", l.OwnStreams,
			l.Streams).At("own-streams", "")
	}
	return nil
}

const (
	// DefaultRequestRate is how many reads one identity makes a second, over a time: many times what a portal with
	// all its pages open asks for, and less than what a gateway answers, so that the others are answered, too.
	DefaultRequestRate = 1000
	// requestBurst is how many seconds of them it makes at once: a program that reads every object of a fleet.
	requestBurst = 4
	// DefaultRefusedRate bounds requests of one address that bring no good token, each of which costs a look
	// at the database. Those that bring one are not counted by address: many people share that of a proxy.
	DefaultRefusedRate = 5
	// refusedBurst is how many seconds of them come at once: a program that was started with a wrong token.
	refusedBurst = 10
	// DefaultStreams bounds open streams of one process: each costs a goroutine and a batch in memory.
	DefaultStreams = 256
	// DefaultOwnStreams bounds open streams of one identity, so that one does not take the places of all.
	DefaultOwnStreams = 32
	// forgedFactor is how many times as many tokens that claim to be of a provider are looked at: their signature is
	// checked by the processor alone, some hundred microseconds each, and no database is asked.
	forgedFactor = 10
	// maxLimit bounds settings of limits: beyond it nothing is limited.
	maxLimit = 1_000_000
)

// limits are those of the whole interface.
type limits struct {
	identities *limit.Rates
	refused    *limit.Buckets
	forged     *limit.Buckets // of refused tokens that claim to be of a provider, by address
	forwarded  *limit.Buckets // of requests for people that are refused, by the portal that sends them
	repeated   *limit.Buckets // of refused tokens that claim to be of a provider, by the token
	reserve    *limit.Buckets // of those that name who was let in before, where the address or portal has none left
	open       *limit.Buckets // of requests that want no token, by address
	pages      *limit.Buckets // of pages that read nothing, by address; many people share that of a proxy
	known      *limit.Known
}

// bearing is how what is shown is counted.
type bearing struct {
	shown   string         // all of it: it is known later, if it is good
	good    bool           // this was, a while ago
	who     string         // for this identity; or for this one was what names the same person
	refused *limit.Buckets // that are asked if it is not known
	bucket  string
	signed  bool   // it claims to be of a provider
	names   string // whom it claims to be of, which nobody has checked; "" where it names nobody
	from    string // where it comes from
	token   string // that of who asks for somebody; "" where nobody does
}

// bearing is that of a request. Nothing that is not good counts against whom it names: everybody can write a token that
// claims to be of somebody. It counts against where it comes from, an address or a portal, and against itself.
func (a *API) bearing(r authn.Request, from string) bearing {
	l, token := &a.limits, cmp.Or(r.Ticket, r.Bearer)
	if token == "" && len(r.Certificates) > 0 {
		token = string(r.Certificates[0].Raw) // no token has such bytes
	}
	b := bearing{shown: token, refused: l.refused, bucket: from, from: from}
	var subject string
	switch {
	case r.OnBehalfOf != "":
		b.token, b.shown = token, token+"\x00"+r.OnBehalfOf
		// While the token of the portal is good, strangers at its address do not keep its people out.
		if portal, known := l.known.Of(token); known {
			b.refused, b.bucket, b.signed = l.forwarded, portal, true
			subject, _ = a.callers.Claims(authn.Request{Bearer: r.OnBehalfOf})
		}
	default:
		if subject, b.signed = a.callers.Claims(r); b.signed {
			b.refused = l.forged
		}
	}
	if b.who, b.good = l.known.Of(b.shown); !b.good && subject != "" {
		b.names = b.token + "\x00subject\x00" + subject
		b.who, _ = l.known.Of(b.names)
	}
	return b
}

// before says whether a request may cost a look at the database or at a signature. What was good a while ago may, and
// is not kept out by what others try. So may a renewed token of somebody who was let in before, whatever is tried where
// it comes from, until their reserve is empty, too.
func (l *limits) before(b bearing, c limit.Class) (left httpserver.Quota, ok bool) {
	var empty bool
	if b.who != "" {
		left, empty = l.identities.Empty(c, b.who)
	}
	if empty || b.good {
		return left, !empty
	}
	if b.signed {
		if left, empty = l.repeated.Empty(limit.Hash(b.shown)); empty {
			return left, false
		}
	}
	left, empty = b.refused.Empty(b.bucket)
	if empty && b.signed && b.who != "" {
		left, empty = l.reserve.Empty(b.from + "\x00" + b.who)
	}
	return left, !empty
}

// succeeded remembers what let somebody in.
func (l *limits) succeeded(b bearing, who model.Caller) {
	l.known.Add(b.shown, identity(who))
	if b.names != "" {
		l.known.Add(b.names, identity(who))
	}
	if b.token != "" {
		l.known.Add(b.token, portalOf(who))
	}
}

// failed counts a request that was let in for nobody. A provider or a database that is away is no fault of who asks.
func (l *limits) failed(b bearing, who model.Caller, err error) {
	// Whom a provider may not make known now is unknown still, and costs as much as a token that is not good.
	unknown := errs.Is(err, errs.Unauthenticated) || identities.Refused(err)
	inVain := unknown || errs.Is(err, errs.Forbidden) // for somebody else
	switch portal := portalOf(who); {
	case b.token != "" && portal != "" && inVain:
		// The token of the portal is good, also where it was not known yet.
		l.known.Add(b.token, portal)
		b.refused, b.bucket, b.signed = l.forwarded, portal, true
		l.refuse(b)
	case b.token != "" && inVain:
		l.known.Remove(b.token) // it was revoked, or never good: a stranger's is all that it is now
		b.refused, b.bucket, b.signed = l.refused, b.from, false
		l.refuse(b)
	case unknown:
		l.refuse(b)
	}
}

// refuse counts what is not good, and forgets that it was: it has ended or was revoked. Of whom it names nothing is
// forgotten.
func (l *limits) refuse(b bearing) {
	l.known.Remove(b.shown)
	if b.signed {
		l.repeated.Take(limit.Hash(b.shown))
	}
	if _, ok := b.refused.Take(b.bucket); !ok && b.signed && b.who != "" {
		l.reserve.Take(b.from + "\x00" + b.who)
	}
}

func newLimits(l Limits, now func() time.Time) limits {
	l = l.orDefaults()
	requests, refused := float64(l.RequestRate), float64(l.RefusedRate)
	return limits{
		identities: limit.NewRates(requests, requestBurst, now),
		refused:    limit.NewBuckets(refused, refusedBurst*refused, now),
		forged:     limit.NewBuckets(forgedFactor*refused, forgedFactor*refusedBurst*refused, now),
		forwarded:  limit.NewBuckets(requests, requestBurst*requests, now),
		repeated:   limit.NewBuckets(forgedFactor*refused, forgedFactor*refusedBurst*refused, now),
		reserve:    limit.NewBuckets(forgedFactor*refused, forgedFactor*refusedBurst*refused, now),
		open:       limit.NewBuckets(refused, refusedBurst*refused, now),
		pages:      limit.NewBuckets(requests, requestBurst*requests, now),
		known:      limit.NewKnown(),
	}
}

// identity is whose requests are counted together: all tokens of one person or program. Each person for whom a program
// asks is counted apart from the others.
func identity(who model.Caller) string {
	return who.Tenant + "\x00" + who.Actor + "\x00" + who.OnBehalfOf
}

// portalOf is by what a program that asks for people is counted itself; "" where no token or certificate of one was
// good.
func portalOf(who model.Caller) string {
	if who.Token == "" && who.Machine == "" {
		return ""
	}
	who.OnBehalfOf = ""
	return identity(who)
}

// tooMany answers a request that is one too many.
func tooMany(w http.ResponseWriter, r *http.Request, left httpserver.Quota) {
	of := ""
	switch left.Policy {
	case "":
	case string(limit.PolicyTenant):
		of = " of the tenant, whose quota allows no more"
	default:
		of = " of the class " + left.Policy
	}
	httpserver.TooMany(w, r, left, "too many requests"+of+": wait as Retry-After says")
}
