package credential_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/credential"
)

func secret(kind source.SecretKind, value string) source.Secret {
	return source.Secret{Name: "dock-" + string(kind), Kind: kind, Value: []byte(value)}
}

// TestFor proves which login a repository gets of several docker configurations (R-DIS-5).
func TestFor(t *testing.T) {
	t.Parallel()
	first := source.Secret{Name: "first", Kind: source.DockerConfig, Value: []byte(`{"auths":{
		"registry.dock.test": {"auth":"aG9zdDpwOnE="},
		"https://registry.dock.test/v1/": {"username":"never","password":"x"},
		"registry.dock.test/ops": {"username":"ops","password":"x"},
		"*.mirror.test": {"username":"any","password":"x"},
		"https://index.docker.io/v1/": {"username":"hub","password":"x"},
		"Token.Test:5000": {"identitytoken":"t"}}}`)}
	second := source.Secret{Name: "second", Kind: source.DockerConfig, Value: []byte(`{"auths":{
		"registry.dock.test/ops/fleet": {"username":"fleet","password":"x"},
		"registry.dock.test/ops": {"username":"late","password":"x"},
		"a.mirror.test": {"username":"one","password":"x"}}}`)}
	s, err := credential.Parse([]source.Secret{first, second})
	if err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]string{
		"registry.dock.test/other":        "first host",
		"registry.dock.test/ops":          "first ops",
		"registry.dock.test/ops/x":        "first ops",
		"registry.dock.test/opsx":         "first host",
		"registry.dock.test/ops/fleet":    "second fleet",
		"registry.dock.test/ops/fleet/v2": "second fleet",
		"registry.dock.test:5000/ops":     "",
		"a.mirror.test/x":                 "second one",
		"b.mirror.test/x":                 "first any",
		"a.b.mirror.test/x":               "",
		"docker.io/library/x":             "first hub",
		"token.test:5000/x":               "first ",
		"none.test/x":                     "",
	} {
		host, repository, _ := strings.Cut(at, "/")
		l, ok := s.For(host, repository)
		if got := strings.TrimLeft(l.Secret+" "+l.Username, " "); ok != (want != "") || got != want {
			t.Errorf("For(%s) = %q, %t; want %q", at, got, ok, want)
		}
		if raw, err := json.Marshal(l); err != nil || strings.Contains(string(raw)+l.String(), `"x"`) {
			t.Errorf("a login is printed as %s, %v", raw, l)
		}
	}
	if l, _ := s.For("registry.dock.test", "other"); l.Password != "p:q" {
		t.Errorf("a password with a colon is %q", l.Password)
	}
	if s.DockerNames() != "first, second" {
		t.Errorf("DockerNames = %q", s.DockerNames())
	}
}

// TestParse proves which values are taken, and that no error shows one.
func TestParse(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(nil)
	t.Cleanup(server.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	quoted := func(s string) string { return fmt.Sprintf("{%q:%q}", "certificates", s) }
	s, err := credential.Parse([]source.Secret{
		secret(source.Basic, `{"username":"me","password":"hunter2"}`), secret(source.Token, `{"token":"hunter2"}`),
		secret(source.SSH, `{"privateKey":"k","knownHosts":"h","passphrase":"hunter2"}`),
		secret(source.Kubeconfig, `{"kubeconfig":"hunter2"}`), secret(source.CA, quoted(ca)),
		secret(source.CA, quoted(ca+ca)),
	})
	if err != nil || s.Basic.Password != "hunter2" || s.Token != "hunter2" || s.SSH.Passphrase != "hunter2" ||
		string(s.Kubeconfig) != "hunter2" || s.Pool() == nil || strings.Count(string(s.Certificates), "BEGIN") != 3 {
		t.Fatalf("Parse = %+v, %v", s, err)
	}
	if empty, err := credential.Parse(nil); err != nil || empty.Pool() != nil {
		t.Errorf("no secrets: %+v, %v", empty, err)
	}
	for name, c := range map[string]struct {
		list []source.Secret
		kind errs.Kind
	}{
		"no JSON":        {[]source.Secret{secret(source.Basic, `hunter2`)}, errs.Invalid},
		"no fields":      {[]source.Secret{secret(source.Basic, `{"hunter2":1}`)}, errs.Invalid},
		"no token":       {[]source.Secret{secret(source.Token, `{"token":""}`)}, errs.Invalid},
		"no known hosts": {[]source.Secret{secret(source.SSH, `{"privateKey":"hunter2"}`)}, errs.Invalid},
		"no auths": {
			[]source.Secret{secret(source.DockerConfig, `{"credsStore":"hunter2"}`)},
			errs.Invalid,
		},
		"auth that is no base64": {[]source.Secret{
			secret(source.DockerConfig, `{"auths":{"r.test":{"auth":"hunter2!"}}}`),
		}, errs.Invalid},
		"auth without a colon": {[]source.Secret{
			secret(source.DockerConfig, `{"auths":{"r.test":{"auth":"aHVudGVyMg=="}}}`),
		}, errs.Invalid},
		"no certificate": {[]source.Secret{secret(source.CA, quoted("hunter2"))}, errs.Invalid},
		"a broken certificate": {
			[]source.Secret{
				secret(source.CA, quoted("-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n")),
			},
			errs.Invalid,
		},
		"half a certificate": {
			[]source.Secret{secret(source.CA, quoted(ca+"-----BEGIN CERTIFICATE-----\nhunter2"))},
			errs.Invalid,
		},
		"an empty kubeconfig": {[]source.Secret{secret(source.Kubeconfig, `{}`)}, errs.Invalid},
		"an unknown kind":     {[]source.Secret{secret("hunter", `hunter2`)}, errs.Invalid},
		"two of one kind": {[]source.Secret{
			secret(source.Token, `{"token":"hunter2"}`),
			secret(source.Token, `{"token":"x"}`),
		}, errs.Invalid},
		"too large": {[]source.Secret{secret(source.Token, strings.Repeat("hunter2", 200_000))}, errs.TooLarge},
	} {
		_, err := credential.Parse(c.list)
		if !errs.Is(err, c.kind) || strings.Contains(err.Error(), "hunter2") ||
			!strings.Contains(err.Error(), `"dock-`) {
			t.Errorf("%s: %v, want %s", name, err, c.kind)
		}
	}
}
