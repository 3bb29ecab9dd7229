package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	"github.com/google/uuid"

	"github.com/chandler-fleet/chandler/libs/bodies/bodiestest"
	"github.com/chandler-fleet/chandler/libs/certtest"
	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/events"
	"github.com/chandler-fleet/chandler/libs/renewed"
	"github.com/chandler-fleet/chandler/services/gateway/app"
	"github.com/chandler-fleet/chandler/services/gateway/model"
)

// works is a gateway with an authority for machines beside an identity provider.
type works struct {
	*house

	authority *certtest.Authority
	caFile    string
	roots     *x509.CertPool // of the server
}

func setupWorks(t *testing.T) *works {
	t.Helper()
	w := &works{authority: certtest.NewAuthority(t), roots: x509.NewCertPool()}
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	w.caFile = file("machines.pem", w.authority.PEM())
	authorities := file("authorities.yaml", "authorities: [{name: machines, caFile: "+w.caFile+"}]\n")
	server := certtest.NewAuthority(t)
	w.roots.AppendCertsFromPEM([]byte(server.PEM()))
	certificate, key := server.Issue(t, "127.0.0.1")
	w.house = setupHouse(t, func(c *app.Config) {
		c.SignIn.ClientAuthorities = authorities
		c.TLS = app.TLS{Listen: "127.0.0.1:0", Certificate: renewed.Of(certificate), Key: renewed.Of(key)}
	})
	return w
}

// machine sends requests with one certificate.
type machine struct {
	w    *works
	http *http.Client
}

func (w *works) machine(by *certtest.Authority, name string, change func(*x509.Certificate)) machine {
	w.t.Helper()
	certificate, key := by.IssueAs(w.t, func(c *x509.Certificate) {
		c.Subject = pkix.Name{CommonName: name, Organization: []string{"pipelines"}}
		if change != nil {
			change(c)
		}
	})
	pair, err := tls.X509KeyPair([]byte(certificate), []byte(key))
	if err != nil {
		w.t.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: w.roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12,
	}}
	w.t.Cleanup(transport.CloseIdleConnections)
	return machine{w, &http.Client{Transport: transport}}
}

// ask sends a request; header are names and values.
func (m machine) ask(method, path string, body any, header ...string) answer {
	m.w.t.Helper()
	return m.w.sendBy(m.http, "https://"+m.w.app.TLSAddr(), "", method, path, body, header...)
}

func (m machine) whoAmI() model.WhoAmI {
	m.w.t.Helper()
	return must[model.WhoAmI](m.w.bench, 200, m.ask("GET", "/api/v1/whoami", nil))
}

// TestMachinesShowCertificates (issue 13, section 1): a machine with a certificate of the authority is a service
// account with an actor of Chandler's own, may do what bindings give to it or to its organizations, and is no person of
// a provider of the same name. That it became known is an event, which does not say what it is called.
func TestMachinesShowCertificates(t *testing.T) {
	t.Parallel()
	w := setupWorks(t)
	ci := w.machine(w.authority, "ann", nil)
	me := ci.whoAmI()
	if !strings.HasPrefix(me.Actor, "service-") || !strings.HasPrefix(me.Identity, "identity-") ||
		me.Kind != "ServiceAccount" || !slices.Equal(me.Groups, []string{"machines:pipelines"}) ||
		len(me.Permissions) != 0 || me.Token != "" {
		t.Errorf("got %+v", me)
	}
	if ann := w.whoAmI(w.jwt("ann", time.Minute)); ann.Actor == me.Actor || ann.Identity == me.Identity {
		t.Errorf("the person %+v is taken for the machine", ann)
	}
	must[problem](w.bench, 403, ci.ask("GET", "/api/v1/clusters", nil))
	other := w.machine(w.authority, "other", func(c *x509.Certificate) { c.Subject.Organization = nil })
	for _, subject := range []model.AccessSubject{
		{Kind: "Group", Name: "machines:pipelines"}, {Kind: "ServiceAccount", Name: other.whoAmI().Actor},
	} {
		must[model.RoleBinding](w.bench, 200, w.do("PUT", bindingsPath+"of-"+strings.ToLower(subject.Kind),
			model.RoleBindingSpec{Role: "viewer", Subjects: []model.AccessSubject{subject}}))
	}
	for _, m := range []machine{ci, other} {
		if a := m.ask("GET", "/api/v1/clusters", nil); a.status != 200 {
			t.Errorf("bound by its group, or by its actor: %d %s", a.status, a.body)
		}
	}
	if again := w.machine(w.authority, "ann", nil).whoAmI(); again.Actor != me.Actor {
		t.Errorf("with another certificate the machine is %+v", again)
	}
	list := must[struct{ Items []model.Identity }](w.bench, 200, w.do("GET", "/api/v1/identities", nil)).Items
	if i := slices.IndexFunc(list, func(i model.Identity) bool { return i.ID == me.Identity }); i < 0 ||
		list[i].Kind != "ServiceAccount" || list[i].Provider != "machines" || list[i].Name != "ann" {
		t.Errorf("listed %+v", list)
	}
	w.until(func() bool { return w.eventsWith(me.Identity) == 1 && w.eventsWith("ServiceAccount") > 0 })
	if n := w.eventsWith("pipelines\x22") + w.eventsWith("ann\x22"); n > 1 { // the group stands in its binding
		t.Errorf("%d events say what the machine is called (D2)", n)
	}
	w.until(func() bool {
		return strings.Contains(string(w.do("GET", "/api/v1/access?token="+me.Identity, nil).body), me.Actor)
	})
}

// TestCertificatesAreChecked: a certificate of a stranger, one that ended and one of a server are answered 401 with the
// reason, as is what a browser sends by itself. A token that is sent beside a certificate decides, good or not.
func TestCertificatesAreChecked(t *testing.T) {
	t.Parallel()
	w := setupWorks(t)
	good := w.machine(w.authority, "ci", nil)
	for name, c := range map[string]struct {
		m      machine
		header []string
		want   string
	}{
		"of a stranger": {w.machine(certtest.NewAuthority(t), "ci", nil), nil, "no authority"},
		"ended": {w.machine(w.authority, "ci", func(c *x509.Certificate) {
			c.NotAfter = time.Now().Add(-time.Minute)
		}), nil, "ended at"},
		"of a server": {w.machine(w.authority, "ci", func(c *x509.Certificate) {
			c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		}), nil, "not for clients"},
		"of a page":           {good, []string{"Origin", "https://evil.example"}, "browser"},
		"of a page that asks": {good, []string{"Sec-Fetch-Site", "cross-site"}, "browser"},
		"beside a bad token":  {good, []string{"Authorization", "Bearer nonsense"}, "not known"},
		"beside no token":     {good, []string{"Authorization", ""}, "no bearer token"},
	} {
		p := must[problem](w.bench, 401, c.m.ask("GET", "/api/v1/whoami", nil, c.header...))
		if !strings.Contains(p.Detail, c.want) {
			t.Errorf("%s: %+v; want %q", name, p, c.want)
		}
	}
	if me := must[model.WhoAmI](w.bench, 200, good.ask("GET", "/api/v1/whoami", nil, "Authorization",
		"Bearer "+token)); me.Kind != "User" || me.Token == "" {
		t.Errorf("beside a token the machine is %+v", me)
	}
	// Without a certificate the address serves people as the other one does.
	none := machine{w, &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: w.roots, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}}
	must[problem](w.bench, 401, none.ask("GET", "/api/v1/whoami", nil))
	must[model.WhoAmI](w.bench, 200, none.ask("GET", "/api/v1/whoami", nil, "Authorization", "Bearer "+token))
}

// TestMachinesEnd: a machine is refused from the next request on, on a connection that is open, when its identity is
// disabled and when its authority has another certificate. Its streams end with the identity.
func TestMachinesEnd(t *testing.T) {
	t.Parallel()
	w := setupWorks(t)
	ci := w.machine(w.authority, "ci", nil)
	me := ci.whoAmI()
	must[model.RoleBinding](w.bench, 200, w.do("PUT", bindingsPath+"ci", model.RoleBindingSpec{
		Role: "viewer", Subjects: []model.AccessSubject{{Kind: "ServiceAccount", Name: me.Actor}},
	}))
	s := w.streamBy(ci.http, "https://"+w.app.TLSAddr(), "", "", "")
	defer s.close()
	path := "/api/v1/identities/" + me.Identity
	must[model.Identity](w.bench, 200, w.do("PATCH", path, `{"disabled": true}`))
	if p := must[problem](w.bench, 401, ci.ask("GET", "/api/v1/whoami", nil)); !strings.Contains(p.Detail, "disabled") {
		t.Errorf("got %+v", p)
	}
	for _, _, ok := s.next(); ok; _, _, ok = s.next() { //nolint:revive // until it ends
	}
	must[model.Identity](w.bench, 200, w.do("PATCH", path, `{"disabled": false}`))
	ci.whoAmI()
	next := certtest.NewAuthority(t)
	if err := os.WriteFile(w.caFile, []byte(next.PEM()), 0o600); err != nil {
		t.Fatal(err)
	}
	must[problem](w.bench, 401, ci.ask("GET", "/api/v1/whoami", nil))
	if again := w.machine(next, "ci", nil).whoAmI(); again.Actor != me.Actor {
		t.Errorf("with a certificate of the next authority the machine is %+v", again)
	}
	short := w.streamBy(w.machine(next, "ci", func(c *x509.Certificate) {
		c.NotAfter = time.Now().Add(2 * time.Second)
	}).http, "https://"+w.app.TLSAddr(), "", "", "")
	defer short.close()
	for _, _, ok := short.next(); ok; _, _, ok = short.next() { //nolint:revive // until it ends
	}
}

// TestMachinesAreNoPersons (R-IP-10): a machine that a role allows to approves a plan that wants one approval, which is
// an event of its actor. Where several people must approve, no service account is one of them, with a certificate or a
// token; a person for whom it asks is.
func TestMachinesAreNoPersons(t *testing.T) {
	t.Parallel()
	w := setupWorks(t)
	ci := w.machine(w.authority, "ci", nil)
	me := ci.whoAmI()
	program := w.give(model.AddToken{Name: "portal", Role: model.RoleNone, Kind: "ServiceAccount"})
	must[model.AccessRole](w.bench, 200, w.do("PUT", "/api/v1/roles/asks-for-people", model.RoleSpec{
		Rules: []model.AccessRule{{Verbs: []string{"impersonate"}, Resources: []string{"people"}}},
	}))
	for _, role := range []string{"approver", "asks-for-people"} {
		must[model.RoleBinding](w.bench, 200, w.do("PUT", bindingsPath+"programs-"+role, model.RoleBindingSpec{
			Role: role, Subjects: []model.AccessSubject{
				{Kind: "ServiceAccount", Name: me.Actor}, {Kind: "ServiceAccount", Name: program.Actor},
			},
		}))
	}
	plan := func(name string, approvers int) (string, model.ApprovePlan) {
		id := uuid.NewString()
		p := proposed(id, name, "tidegauge.v1.0.0", "tidegauge")
		p.Approvers = approvers
		w.fact(events.Resolver, events.KindInstallPlan, id, "spoke/ops/"+name, p)
		return "/api/v1/installplans/" + id + "/approve", model.ApprovePlan{Digest: p.Digest}
	}
	path, consent := plan("install-one", 1)
	if got := must[model.InstallPlan](w.bench, 200, ci.ask("POST", path, consent)); got.MissingApprovals != 0 ||
		got.Approvals[0].By != me.Actor {
		t.Errorf("got %+v", got.PlanTerms)
	}
	path, consent = plan("install-two", 2)
	for who, a := range map[string]answer{
		"with a certificate": ci.ask("POST", path, consent),
		"with a token":       w.as(program.Secret, "POST", path, consent),
	} {
		if p := must[problem](w.bench, 403, a); p.Errors[0].Rule != "people-approve" {
			t.Errorf("%s: %+v", who, p)
		}
	}
	for i, name := range []string{"ann", "bob"} {
		person := w.jwt(name, time.Minute)
		w.bind(name, "approver", w.whoAmI(person).Actor, model.AccessScope{})
		got := must[model.InstallPlan](w.bench, 200, ci.ask("POST", path, consent, "Chandler-On-Behalf-Of",
			"Bearer "+person))
		if got.MissingApprovals != 1-i {
			t.Errorf("after %s: %+v", name, got.PlanTerms)
		}
	}
	w.until(func() bool { return w.eventsWith(`"authvia":"`+me.Actor+`"`) == 2 })
	must[problem](w.bench, 401, ci.ask("GET", "/api/v1/whoami", nil, "Chandler-On-Behalf-Of", "Bearer nonsense"))
	must[model.Identity](w.bench, 200, w.do("PATCH", "/api/v1/identities/"+me.Identity, `{"disabled": true}`))
	must[problem](w.bench, 401, ci.ask("GET", "/api/v1/whoami", nil, "Chandler-On-Behalf-Of",
		"Bearer "+w.jwt("ann", time.Minute)))
}

// TestMachinesHaveOneActor: an administrator has a machine be the program that has a token, and never a person.
func TestMachinesHaveOneActor(t *testing.T) {
	t.Parallel()
	w := setupWorks(t)
	me := w.machine(w.authority, "ci", nil).whoAmI()
	program := w.give(model.AddToken{Name: "portal", Role: model.RoleNone, Kind: "ServiceAccount"})
	person := w.give(model.AddToken{Name: "ann", Role: model.RoleNone})
	path := "/api/v1/identities/" + me.Identity
	for _, actor := range []string{person.Actor, w.whoAmI(w.jwt("bob", time.Minute)).Actor} {
		p := must[problem](w.bench, 400, w.do("PATCH", path, model.ConfigureIdentity{Actor: actor}))
		if p.Errors[0].Rule != "actor-kind" {
			t.Errorf("got %+v", p)
		}
	}
	if i := must[model.Identity](w.bench, 200, w.do("PATCH", path, model.ConfigureIdentity{
		Actor: program.Actor,
	})); i.Actor != program.Actor {
		t.Errorf("got %+v", i)
	}
}

// TestBadSettingsOfMachines: half of what machines need is refused, with the setting.
func TestBadSettingsOfMachines(t *testing.T) {
	t.Parallel()
	providers := filepath.Join(t.TempDir(), "providers.yaml")
	authorities := filepath.Join(t.TempDir(), "authorities.yaml")
	for path, text := range map[string]string{
		providers:   "providers: [{name: house, issuer: 'https://a.example.org', audiences: [x]}]\n",
		authorities: "authorities: [{name: house, caFile: x}]\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg  app.Config
		want string
	}{
		{app.Config{TLS: app.TLS{Listen: "127.0.0.1:0"}}, "tls-certificate"},
		{app.Config{TLS: app.TLS{Key: renewed.Of("x")}}, "tls-listen"},
		{app.Config{SignIn: app.SignIn{ClientAuthorities: authorities}}, "tls-listen"},
		{app.Config{SignIn: app.SignIn{ClientAuthorities: authorities, OIDCProviders: providers}}, "that of another"},
	} {
		c.cfg.Bodies, c.cfg.CredentialsRecipient = bodiestest.Secrets(), key.Recipient().String()
		if _, err := app.New(t.Context(), c.cfg, quiet()); !errs.Is(err, errs.Invalid) ||
			!strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// TestMachinesSendKeys: a POST of a machine with an Idempotency-Key is carried out once, also with a renewed
// certificate, and who reads the database does not read the token that it was answered. Another machine that asks
// for the same person does not get that answer (R-API-5).
func TestMachinesSendKeys(t *testing.T) {
	t.Parallel()
	w := setupWorks(t)
	ci := w.machine(w.authority, "ci", nil)
	admin := func(m machine) {
		actor := m.whoAmI().Actor
		subject := model.AccessSubject{Kind: "ServiceAccount", Name: actor}
		must[model.RoleBinding](w.bench, 200, w.do("PUT", bindingsPath+actor,
			model.RoleBindingSpec{Role: "admin", Subjects: []model.AccessSubject{subject}}))
	}
	admin(ci)
	add := model.AddToken{Name: "robot", Role: model.RoleNone}
	made := must[model.NewToken](w.bench, 201, ci.ask("POST", "/api/v1/tokens", add, "Idempotency-Key", "one"))
	renewed := w.machine(w.authority, "ci", nil)
	again := renewed.ask("POST", "/api/v1/tokens", add, "Idempotency-Key", "one")
	if n := must[model.NewToken](w.bench, 201, again); n.Secret != made.Secret ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("again: %+v, %v", n, again.header)
	}
	add.Name = "other"
	must[problem](w.bench, 422, ci.ask("POST", "/api/v1/tokens", add, "Idempotency-Key", "one"))
	var readable bool
	if err := w.pool("gateway").QueryRow(t.Context(), `select coalesce(bool_or(position($1::bytea in answer) > 0), true)
		from gateway.idempotency_keys`, []byte("robot")).Scan(&readable); err != nil || readable {
		t.Errorf("the answer is kept in the clear, or not at all: %v", err)
	}

	ann := w.jwt("ann", time.Minute)
	must[model.RoleBinding](w.bench, 200, w.do("PUT", bindingsPath+"ann", model.RoleBindingSpec{
		Role: "admin", Subjects: []model.AccessSubject{{Kind: "User", Name: w.whoAmI(ann).Actor}},
	}))
	second := w.machine(w.authority, "second", nil)
	admin(second)
	forAnn := []string{"Idempotency-Key", "two", "Chandler-On-Behalf-Of", "Bearer " + ann}
	must[model.NewToken](w.bench, 201, ci.ask("POST", "/api/v1/tokens", add, forAnn...))
	must[problem](w.bench, 409, second.ask("POST", "/api/v1/tokens", add, forAnn...))
}
