package git_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	gitserver "github.com/go-git/go-git/v5/plumbing/transport/server"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/chandler-fleet/chandler/libs/source"
	"github.com/chandler-fleet/chandler/libs/source/archive"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/git"
)

func session(dir string) (transport.UploadPackSession, error) {
	ep, err := transport.NewEndpoint("/" + filepath.Base(filepath.Dir(dir)))
	if err != nil {
		return nil, err
	}
	ep.Path = ".git"
	return gitserver.NewServer(gitserver.NewFilesystemLoader(osfs.New(dir))).NewUploadPackSession(ep, nil)
}

// smart serves a repository over HTTP without any program beside.
func smart(t *testing.T, dir string) http.Handler {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /fleet.git/info/refs", func(w http.ResponseWriter, r *http.Request) {
		s, err := session(dir)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		adv, err := s.AdvertisedReferencesContext(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		adv.Prefix = [][]byte{[]byte("# service=git-upload-pack"), pktline.Flush}
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_ = adv.Encode(w)
	})
	mux.HandleFunc("POST /fleet.git/git-upload-pack", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		_ = answer(r.Context(), dir, r.Body, w)
	})
	return mux
}

func answer(ctx context.Context, dir string, in io.Reader, out io.Writer) error {
	s, err := session(dir)
	if err != nil {
		return err
	}
	req := packp.NewUploadPackRequest()
	if err := req.Decode(in); err != nil {
		return err
	}
	res, err := s.UploadPack(ctx, req)
	if err != nil {
		return pktline.NewEncoder(out).Encodef("ERR upload-pack: not our ref: %v\n", err)
	}
	return res.Encode(out)
}

// backend serves a repository with git itself, which knows shallow fetches.
func backend(t *testing.T, dir string) http.Handler {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("git is not installed")
	}
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".gitconfig"), []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, ".git"), filepath.Join(home, "fleet.git")); err != nil {
		t.Fatal(err)
	}
	return &cgi.Handler{
		Path: program, Args: []string{"http-backend"}, Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + home, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + home},
	}
}

// overSSH serves a repository over SSH and returns a source with its keys.
func overSSH(t *testing.T, dir string) git.Source {
	t.Helper()
	host, _ := newKey(t)
	client, private := newKey(t)
	conf := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !bytes.Equal(key.Marshal(), client.PublicKey().Marshal()) {
			return nil, fmt.Errorf("unknown key")
		}
		return &ssh.Permissions{}, nil
	}}
	conf.AddHostKey(host)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serveSSH(conn, conf, dir)
		}
	}()
	known := knownhosts.Line([]string{knownhosts.Normalize(l.Addr().String())}, host.PublicKey())
	secret := fmt.Sprintf(`{"privateKey":%q,"knownHosts":%q}`, private, known)
	set, err := credential.Parse([]source.Secret{{Name: "deploy", Kind: source.SSH, Value: []byte(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	return git.Source{
		URL: "ssh://git@" + l.Addr().String() + "/srv/it's.git", Credentials: set, Temp: t.TempDir(),
		Limits: archive.Standard(),
	}
}

func newKey(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

func serveSSH(conn net.Conn, conf *ssh.ServerConfig, dir string) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, conf)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for c := range channels {
		ch, requests, err := c.Accept()
		if err != nil {
			return
		}
		for r := range requests {
			ok := r.Type == "exec" && strings.Contains(string(r.Payload), `git-upload-pack '/srv/it'\''s.git'`)
			if err := r.Reply(ok, nil); err != nil || !ok {
				continue
			}
			go func() {
				defer func() { _ = ch.Close() }()
				s, err := session(dir)
				if err != nil {
					return
				}
				adv, err := s.AdvertisedReferences()
				if err != nil {
					return
				}
				if adv.Encode(ch) == nil {
					_ = answer(context.Background(), dir, ch, ch)
				}
			}()
		}
	}
}
