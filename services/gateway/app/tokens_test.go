package app_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

const tokensPath = "/api/v1/tokens"

// give makes a token, as the first administrator.
func (b *bench) give(in model.AddToken) model.NewToken {
	b.t.Helper()
	return must[model.NewToken](b, 201, b.do("POST", tokensPath, in))
}

func (b *bench) tokens(bearer string) []model.Token {
	b.t.Helper()
	return must[struct{ Items []model.Token }](b, 200, b.as(bearer, "GET", tokensPath, nil)).Items
}

// eventsWith counts the events in whose text a word stands.
func (b *bench) eventsWith(word string) int {
	b.t.Helper()
	return b.count(`select count(*) from eventlog.events where position(convert_to('` + word +
		`', 'UTF8') in body) > 0`)
}

// TestPeopleNotTokensApprove proves R-IP-10 with tokens that the API gave: two people approve a plan that wants two,
// and one person with two tokens counts once.
func TestPeopleNotTokensApprove(t *testing.T) {
	t.Parallel()
	b := setup(t)
	laptop := b.give(model.AddToken{Name: "Ingrid, laptop", Role: model.RoleAdmin})
	phone := b.give(model.AddToken{Name: "Ingrid, phone", Role: model.RoleAdmin, Actor: laptop.Actor})
	mate := b.give(model.AddToken{Name: "Ole", Role: model.RoleAdmin})
	if laptop.ID == phone.ID || laptop.Secret == phone.Secret || laptop.Actor != phone.Actor ||
		mate.Actor == laptop.Actor || mate.Actor == mate.ID {
		t.Fatalf("got %+v, %+v and %+v", laptop.Token, phone.Token, mate.Token)
	}
	id := uuid.NewString()
	p := proposed(id, "install-aaaaa", "tidegauge.v1.0.0", "tidegauge")
	p.Approvers = 2
	b.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/install-aaaaa", p)
	approve := func(bearer string) model.InstallPlan {
		t.Helper()
		return must[model.InstallPlan](b, 200, b.as(bearer, "POST", "/api/v1/installplans/"+id+"/approve",
			model.ApprovePlan{Digest: p.Digest}))
	}
	if first := approve(laptop.Secret); first.MissingApprovals != 1 || first.Approvals[0].By != laptop.Actor {
		t.Errorf("got %+v", first.PlanTerms)
	}
	if same := approve(phone.Secret); same.MissingApprovals != 1 || same.Phase != "RequiresApproval" {
		t.Errorf("one person counts twice: %+v", same.PlanTerms)
	}
	if both := approve(mate.Secret); both.Phase != "Installing" || len(both.Approvals) != 2 ||
		both.Approvals[1].By != mate.Actor {
		t.Errorf("got %s, %+v", both.Phase, both.PlanTerms)
	}
	b.until(func() bool { return b.eventsWith(mate.Actor) == 2 }) // the token was made, and the plan approved
	for _, name := range []string{"Ingrid", "Ole"} {
		if n := b.eventsWith(name); n != 0 {
			t.Errorf("%d events hold the name %s (D2)", n, name)
		}
	}
}

// TestTokensAreMadeListedAndRevoked: administrators make tokens, whose secrets are told once and stored as hashes;
// a revoked one is refused at once and still says who it was; who made and revoked what is recorded (DESIGN D10).
func TestTokensAreMadeListedAndRevoked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	reader := b.give(model.AddToken{Name: "dashboard", Role: model.RoleViewer})
	if n := b.count(`select count(*) from gateway.tokens where hash = sha256(convert_to('` + reader.Secret +
		`', 'UTF8'))`); n != 1 || !strings.HasPrefix(reader.Secret, "cht_") {
		t.Errorf("%d rows hold the hash of %s", n, reader.ID)
	}
	if a := b.as(reader.Secret, "GET", "/api/v1/clusters", nil); a.status != 200 {
		t.Errorf("a viewer reads: %d", a.status)
	}
	for method, path := range map[string]string{
		"GET": tokensPath, "POST": tokensPath, "DELETE": tokensPath + "/" + reader.ID,
	} {
		if a := b.as(reader.Secret, method, path, validBody(method, path)); a.status != http.StatusForbidden {
			t.Errorf("%s %s as a viewer: %d %s", method, path, a.status, a.body)
		}
	}
	listed := b.do("GET", tokensPath, nil)
	if strings.Contains(string(listed.body), reader.Secret) {
		t.Error("the list tells a secret")
	}
	got := b.tokens(token)
	if len(got) != 2 || got[0].ID != "token-admin" || got[0].Actor != "token-admin" || got[1].Name != "dashboard" ||
		got[1].EndsAt == nil || got[1].EndsAt.Sub(got[1].CreatedAt).Round(time.Hour) != 90*24*time.Hour ||
		got[1].CreatedAt.IsZero() || got[1].Actor != reader.Actor {
		t.Errorf("got %+v", got)
	}
	page := must[struct {
		Items []model.Token
		Next  string
	}](b, 200, b.do("GET", tokensPath+"?limit=1", nil))
	rest := must[struct{ Items []model.Token }](b, 200, b.do("GET", tokensPath+"?cursor="+page.Next, nil))
	if len(page.Items) != 1 || len(rest.Items) != 1 || rest.Items[0].ID != reader.ID {
		t.Errorf("paged: %+v, then %+v", page, rest)
	}
	must[problem](b, 400, b.do("GET", tokensPath+"?cursor=WyJhIl0", nil))

	rotated := must[model.NewToken](b, 200, b.do("POST", tokensPath+"/"+reader.ID+"/rotate", model.RotateToken{}))
	for _, secret := range []string{reader.Secret, rotated.Secret} {
		if a := b.as(secret, "GET", "/api/v1/clusters", nil); a.status != 200 {
			t.Errorf("after a rotation: %d", a.status)
		}
	}
	// What it was used for last is known to some minutes: it is noted once, and not by each request.
	one := must[model.Token](b, 200, b.do("GET", tokensPath+"/"+reader.ID, nil))
	if one.UsedAt == nil || time.Since(*one.UsedAt) > time.Minute || one.PreviousEndsAt == nil ||
		!one.PreviousEndsAt.Equal(*rotated.PreviousEndsAt) || got[1].UsedAt == nil ||
		!one.UsedAt.Equal(*got[1].UsedAt) {
		t.Errorf("got %+v", one)
	}
	must[problem](b, 404, b.do("GET", tokensPath+"/absent", nil))
	must[problem](b, 400, b.do("POST", tokensPath+"/"+reader.ID+"/rotate", `{"overlapSeconds": -1}`))

	if a := b.do("DELETE", tokensPath+"/"+reader.ID, nil); a.status != http.StatusNoContent {
		t.Errorf("revoked: %d %s", a.status, a.body)
	}
	if a := b.as(reader.Secret, "GET", "/api/v1/clusters", nil); a.status != http.StatusUnauthorized {
		t.Errorf("a revoked token: %d", a.status)
	}
	must[problem](b, 404, b.do("DELETE", tokensPath+"/"+reader.ID, nil))
	if got = b.tokens(token); len(got) != 2 || got[1].Name != "dashboard" || !got[1].Ended(time.Now()) ||
		got[0].Ended(time.Now()) {
		t.Errorf("got %+v", got)
	}
	asked := must[struct{ Items []model.Question }](b, 200, b.do("GET", "/api/v1/questions", nil)).Items
	about := "viewer " + reader.ID + " of " + reader.Actor
	if len(asked) != 3 || asked[0].Action != "token.revoke" || asked[1].Action != "token.rotate" ||
		asked[2].Action != "token.add" || asked[0].About != about || asked[2].About != about ||
		asked[0].Actor != "token-admin" {
		t.Errorf("recorded %+v", asked)
	}
	// The person who had it may get another one, as the same person.
	if again := b.give(model.AddToken{
		Name: "dashboard", Role: model.RoleViewer,
		Actor: reader.Actor,
	}); again.Actor != reader.Actor || again.ID == reader.ID {
		t.Errorf("got %+v", again.Token)
	}
}

// TestBadTokens: what cannot be asked for, with place and rule.
func TestBadTokens(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, c := range map[string]struct{ body, location, rule string }{
		"no name":          {`{"name": "", "role": "viewer"}`, "body.name", "min-length"},
		"a control code":   {`{"name": "a\u001b[2J", "role": "viewer"}`, "body.name", "type"},
		"no such role":     {`{"name": "a", "role": "root"}`, "body.role", "one-of"},
		"no role":          {`{"name": "a"}`, "body", "required"},
		"an end that was":  {`{"name": "a", "role": "viewer", "endsAt": "2020-01-01T00:00:00Z"}`, "body.endsAt", "token-life"},
		"no end":           {`{"name": "a", "role": "viewer", "endsAt": "2099-01-01T00:00:00Z"}`, "body.endsAt", "token-life"},
		"an unknown actor": {`{"name": "a", "role": "viewer", "actor": "ingrid"}`, "body.actor", "actor-known"},
	} {
		p := must[problem](b, 400, b.do("POST", tokensPath, c.body))
		if len(p.Errors) == 0 || p.Errors[0].Location != c.location || p.Errors[0].Rule != c.rule {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if n := b.count(`select count(*) from gateway.tokens`); n != 1 {
		t.Errorf("refused requests made %d tokens", n-1)
	}
}

// TestTokensEnd: a token ends when it says, also in an open stream, and the list tells when.
func TestTokensEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	end := time.Now().Add(2 * time.Second).UTC()
	short := b.give(model.AddToken{Name: "short", Role: model.RoleViewer, EndsAt: &end})
	if short.EndsAt == nil || !short.EndsAt.Equal(end.Truncate(time.Second)) {
		t.Errorf("it ends at %v, want %v", short.EndsAt, end)
	}
	s := b.streamAs(short.Secret, "", "")
	defer s.close()
	for _, _, ok := s.next(); ok; _, _, ok = s.next() { //nolint:revive // until it ends
	}
	if a := b.as(short.Secret, "GET", "/api/v1/clusters", nil); a.status != http.StatusUnauthorized {
		t.Errorf("a token that ended: %d", a.status)
	}
}

// TestTokensOfOtherTenantsAreNotThere (DESIGN D10).
func TestTokensOfOtherTenantsAreNotThere(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const other = "other-token-0123456789"
	b.exec("gateway", `insert into gateway.tokens (tenant, id, hash, role) values ('other', 'token-other', sha256('`+
		other+`'), 'admin')`)
	ours := b.give(model.AddToken{Name: "ours", Role: model.RoleAdmin})
	if got := b.tokens(other); len(got) != 1 || got[0].ID != "token-other" {
		t.Errorf("got %+v", got)
	}
	must[problem](b, 404, b.as(other, "DELETE", tokensPath+"/"+ours.ID, nil))
	must[problem](b, 400, b.as(other, "POST", tokensPath,
		model.AddToken{Name: "a", Role: model.RoleViewer, Actor: ours.Actor}))
	// Administrators of another tenant are no reason to let the last one of this tenant go.
	if p := must[problem](b, 409, b.as(other, "DELETE", tokensPath+"/token-other",
		nil)); p.Errors[0].Rule != "last-administrator" {
		t.Errorf("got %+v", p)
	}
}

// TestOneAdministratorStays: the last token of an administrator is not revoked, not even by two who revoke each other;
// the first one that was revoked does not come back with the next start, and another one from the configuration works.
func TestOneAdministratorStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if p := must[problem](b, 409, b.do("DELETE", tokensPath+"/token-admin", nil)); !strings.Contains(
		p.Detail, "only administrator's token") {
		t.Errorf("got %+v", p)
	}
	b.give(model.AddToken{Name: "no administrator", Role: model.RoleViewer})
	must[problem](b, 409, b.do("DELETE", tokensPath+"/token-admin", nil))
	one, two := b.give(model.AddToken{Name: "one", Role: model.RoleAdmin}),
		b.give(model.AddToken{Name: "two", Role: model.RoleAdmin})

	// A stream that is open ends with its token.
	s := b.stream("", "")
	defer s.close()
	if a := b.as(one.Secret, "DELETE", tokensPath+"/token-admin", nil); a.status != http.StatusNoContent {
		t.Fatalf("revoked: %d %s", a.status, a.body)
	}
	must[model.Cluster](b, 201, b.as(one.Secret, "POST", "/api/v1/clusters",
		model.RegisterCluster{Name: "spoke", Kubeconfig: kubeconfig}))
	for id, typ, ok := s.next(); ok; id, typ, ok = s.next() {
		if typ != "access.token-created.v1" { // of before, which may have got its position when the stream was open
			t.Fatalf("a stream of a revoked token tells %s %s", id, typ)
		}
	}

	status := make([]int, 2)
	var both sync.WaitGroup
	for i, c := range []struct{ by, of model.NewToken }{{one, two}, {two, one}} {
		both.Go(func() { status[i] = b.as(c.by.Secret, "DELETE", tokensPath+"/"+c.of.ID, nil).status })
	}
	both.Wait()
	slices.Sort(status)
	if status[0] != http.StatusNoContent || status[1] < http.StatusBadRequest {
		t.Errorf("two who revoke each other: %v", status)
	}
	if n := b.count(`select count(*) from gateway.tokens where role = 'admin'
		and (expires is null or expires > now())`); n != 1 {
		t.Errorf("%d administrators are left, want 1", n)
	}

	b.stop()
	b.url, b.stop = b.gateway(token)
	if a := b.do("GET", "/api/v1/clusters", nil); a.status != http.StatusUnauthorized {
		t.Errorf("the revoked token of the configuration: %d", a.status)
	}
	b.stop()
	b.url, b.stop = b.gateway("another-admin-token-0123456789")
	if a := b.as("another-admin-token-0123456789", "GET", tokensPath, nil); a.status != 200 {
		t.Errorf("a new token of the configuration: %d", a.status)
	}
}
