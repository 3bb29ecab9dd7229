package git_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/git"
)

func secrets(t *testing.T, kind source.SecretKind, value string) *credential.Set {
	t.Helper()
	s, err := credential.Parse([]source.Secret{{Name: "deploy", Kind: kind, Value: []byte(value)}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHTTP proves credentials, redirects and refusals over HTTP.
func TestHTTP(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	repo := smart(t, f.dir)
	gone := make(chan struct{})
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the credential was shown to another host")
		}
		repo.ServeHTTP(w, r)
	}))
	t.Cleanup(thief.Close)
	mux := http.NewServeMux()
	mux.Handle("/fleet.git/", repo)
	mux.Handle("/private/", http.StripPrefix("/private", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name, password, _ := r.BasicAuth(); name+password != "meopen" &&
			r.Header.Get("Authorization") != "Bearer open" {
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		repo.ServeHTTP(w, r)
	})))
	mux.HandleFunc("/old/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(r.URL.String(), "/old", "", 1), http.StatusMovedPermanently)
	})
	mux.HandleFunc("/away/", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, thief.URL+strings.Replace(r.URL.String(), "/away", "", 1), http.StatusFound)
	})
	mux.HandleFunc("/page/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") })
	mux.HandleFunc("/broken/", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(
			w, "", http.StatusBadGateway)
	})
	mux.HandleFunc("/noise/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = io.WriteString(w, "001e# service=git-upload-pack\n0000zzzz")
	})
	mux.HandleFunc("/silent/", func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-gone:
		case <-r.Context().Done():
		}
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(gone) })
	basic := secrets(t, source.Basic, `{"username":"me","password":"open"}`)
	for name, c := range map[string]struct {
		path    string
		secrets *credential.Set
		kind    errs.Kind
		says    string
	}{
		"open":             {"/fleet.git", nil, "", ""},
		"basic":            {"/private/fleet.git", basic, "", ""},
		"token":            {"/private/fleet.git", secrets(t, source.Token, `{"token":"open"}`), "", ""},
		"moved":            {"/old/fleet.git", basic, "", ""},
		"moved to another": {"/away/fleet.git", basic, "", ""},
		"no credential":    {"/private/fleet.git", nil, errs.Forbidden, "asks for a credential"},
		"a wrong one": {
			"/private/fleet.git", secrets(t, source.Token, `{"token":"hunter2"}`), errs.Forbidden,
			"refuses the credential",
		},
		"nothing there": {"/none.git", nil, errs.NotFound, "status 404"},
		"a page":        {"/page/fleet.git", nil, errs.Invalid, "smart protocol"},
		"a fault":       {"/broken/fleet.git", nil, errs.Unavailable, "status 502"},
		"no protocol":   {"/noise/fleet.git", nil, errs.Invalid, "git's protocol"},
		"silence":       {"/silent/fleet.git", nil, errs.Unavailable, "silent for"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := git.Source{
				URL: server.URL + c.path, Insecure: true, Credentials: c.secrets, Temp: t.TempDir(),
				Limits: archive.Standard(), Stall: time.Second,
			}
			tree, err := git.Open(t.Context(), s)
			if errs.KindOf(err) != c.kind || err != nil &&
				(!strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2")) {
				t.Fatalf("%v, want %q with %q", err, c.kind, c.says)
			}
			if tree != nil {
				if err := tree.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	s := git.Source{URL: "https://me:hunter2@127.0.0.1:1/x", Temp: t.TempDir(), Limits: archive.Standard()}
	if _, err := git.Probe(t.Context(), s); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("a password in the URL: %v", err)
	}
	for _, bad := range []string{"ftp://x/y", "https://x/%zz", "plain"} {
		if _, err := git.Probe(t.Context(), git.Source{URL: bad}); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestSSH proves that a host is believed by its key alone, and what is said of keys that do not fit.
func TestSSH(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	good := overSSH(t, f.dir)
	_, stranger := newKey(t)
	other, _ := newKey(t)
	address := strings.TrimSuffix(strings.TrimPrefix(good.URL, "ssh://git@"), "/srv/it's.git")
	with := func(key, hosts string) *credential.Set {
		return secrets(t, source.SSH, fmt.Sprintf(`{"privateKey":%q,"knownHosts":%q}`, key, hosts))
	}
	key, hosts := good.Credentials.SSH.PrivateKey, good.Credentials.SSH.KnownHosts
	for name, c := range map[string]struct {
		secrets *credential.Set
		kind    errs.Kind
		says    string
	}{
		"right":        {good.Credentials, "", ""},
		"no secret":    {nil, errs.Forbidden, "needs a secret of kind ssh"},
		"another kind": {secrets(t, source.Token, `{"token":"x"}`), errs.Forbidden, "needs a secret of kind ssh"},
		"no key":       {with("x", hosts), errs.Invalid, "private key"},
		"no hosts":     {with(key, "# none"), errs.Forbidden, "not among the known hosts"},
		"broken hosts": {with(key, "x"), errs.Invalid, "ssh-keyscan"},
		"another host": {
			with(key, knownhosts.Line([]string{"git.dock.test"}, other.PublicKey())), errs.Forbidden,
			"not among the known hosts",
		},
		"a host key new": {
			with(key, knownhosts.Line([]string{knownhosts.Normalize(address)}, other.PublicKey())),
			errs.Forbidden, "another key",
		},
		"a key refused": {with(stranger, hosts), errs.Forbidden, "refuses the key"},
	} {
		s := good
		s.Credentials, s.Temp = c.secrets, t.TempDir()
		_, err := git.Probe(t.Context(), s)
		if errs.KindOf(err) != c.kind || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q with %q", name, err, c.kind, c.says)
		}
		if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
			t.Errorf("%s left behind: %v, %v", name, left, err)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s := good
	s.URL, s.Stall = "ssh://"+l.Addr().String()+"/x", 50*time.Millisecond
	if _, err := git.Probe(t.Context(), s); !errs.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "silent for 50ms") {
		t.Errorf("a host that says nothing: %v", err)
	}
}

// packed is a pack of objects made by hand.
func packed(count uint32, objects ...[]byte) []byte {
	b := binary.BigEndian.AppendUint32([]byte("PACK\x00\x00\x00\x02"), count)
	for _, o := range objects {
		b = append(b, o...)
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

// packedObject is one object of a pack; size is what its header claims.
func packedObject(kind byte, size uint64, base, content []byte) []byte {
	first := kind<<4 | byte(size&15)
	size >>= 4
	var b []byte
	for size > 0 {
		b = append(b, first|0x80)
		first = byte(size & 0x7f)
		size >>= 7
	}
	b = append(append(b, first), base...)
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(content)
	_ = w.Close()
	return append(b, z.Bytes()...)
}

// TestPacks proves that a pack is refused before it unfolds (issue: decompression bombs).
func TestPacks(t *testing.T) {
	t.Parallel()
	const blob, refDelta = 3, 7
	f := newFixture(t)
	repo := smart(t, f.dir)
	delta := binary.AppendUvarint(binary.AppendUvarint(nil, 1), 1<<40)
	for name, c := range map[string]struct {
		pack []byte
		kind errs.Kind
		says string
	}{
		"a delta of a terabyte": {packed(2, packedObject(blob, 1, nil, []byte("x")),
			packedObject(refDelta, uint64(len(delta)), make([]byte, 20), delta)), errs.TooLarge, "as a difference"},
		"a blob of a terabyte": {
			packed(1, packedObject(blob, 1<<40, nil, []byte("x"))), errs.TooLarge,
			"unfolds",
		},
		"many that are large together": {packed(40, bytes.Repeat(packedObject(blob, 90_000, nil, make([]byte, 90_000)),
			40)), errs.TooLarge, "unfolds"},
		"a blob larger than it says": {
			packed(1, packedObject(blob, 1, nil, make([]byte, 10_000))), errs.Invalid,
			"cannot be read",
		},
		"a delta that is none": {
			packed(1, packedObject(refDelta, 1, make([]byte, 20), []byte{0x80})),
			errs.Invalid, "has no size",
		},
		"more objects than there are": {
			packed(3, packedObject(blob, 1, nil, []byte("x"))), errs.Invalid,
			"cannot be read",
		},
		"too many objects":       {packed(1 << 31), errs.TooLarge, "objects"},
		"not what was asked for": {packed(1, packedObject(blob, 1, nil, []byte("x"))), errs.NotFound, "no commit"},
		"no pack":                {[]byte("nothing of the kind, and long enough"), errs.Invalid, "cannot be read"},
		"nothing":                {nil, errs.Invalid, "cannot be read"},
		"too large":              {make([]byte, 2<<20), errs.TooLarge, "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet {
					repo.ServeHTTP(w, r)
					return
				}
				_, _ = w.Write(append([]byte("0008NAK\n"), c.pack...))
			}))
			t.Cleanup(server.Close)
			limits := archive.Standard()
			limits.Compressed, limits.EntryBytes, limits.Bytes = 1<<20, 100_000, 400_000
			s := git.Source{URL: server.URL + "/fleet.git", Insecure: true, Temp: t.TempDir(), Limits: limits}
			_, err := git.Open(t.Context(), s)
			if errs.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %s with %q", err, c.kind, c.says)
			}
			if left, err := os.ReadDir(s.Temp); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}
