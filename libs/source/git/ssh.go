package git

import (
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/chandler-fleet/chandler/libs/errs"
	"github.com/chandler-fleet/chandler/libs/source/credential"
	"github.com/chandler-fleet/chandler/libs/source/internal/web"
)

// overSSH is git's protocol over SSH.
type overSSH struct {
	client  *ssh.Client
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	stop    func() bool
}

// dialSSH connects and starts the service. The server must show a key that the secret knows: there is no
// way to leave that out.
func (s Source) dialSSH(ctx context.Context, user, host, path string) (repository, error) {
	if s.Credentials == nil || s.Credentials.SSH == nil {
		return nil, errs.New(errs.Forbidden, "SSH needs a secret of kind ssh, with a private key and the known hosts")
	}
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(strings.Trim(host, "[]"), "22")
	}
	if user == "" {
		user = "git"
	}
	config, err := clientConfig(s.Credentials.SSH, user, host, s.Temp)
	if err != nil {
		return nil, err
	}
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, web.Explain(err)
	}
	stall := s.Stall
	if stall == 0 {
		stall = web.Stall
	}
	conn := &impatient{Conn: raw, stall: stall}
	h := &overSSH{stop: context.AfterFunc(ctx, func() { _ = raw.Close() })}
	c, channels, requests, err := ssh.NewClientConn(conn, host, config)
	if err != nil {
		h.stop()
		_ = raw.Close() // the reason why there is no connection matters more
		return nil, sshError(err)
	}
	h.client = ssh.NewClient(c, channels, requests)
	if err := h.start(path); err != nil {
		return nil, errors.Join(web.Explain(err), h.close())
	}
	return &remote{link: h, s: s}, nil
}

func (h *overSSH) start(path string) (err error) {
	if h.session, err = h.client.NewSession(); err != nil {
		return err
	}
	if h.in, err = h.session.StdinPipe(); err != nil {
		return err
	}
	if h.out, err = h.session.StdoutPipe(); err != nil {
		return err
	}
	return h.session.Start(service + " '" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'")
}

func (h *overSSH) close() error {
	h.stop()
	_ = h.client.Close() // the server may have been first
	return nil
}

func (h *overSSH) advertisement(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(io.LimitReader(h.out, maxAdvertisement)), nil
}

func (h *overSSH) request(_ context.Context, encode func(io.Writer) error) (io.ReadCloser, error) {
	if err := encode(h.in); err != nil {
		return nil, web.Explain(err)
	}
	if err := h.in.Close(); err != nil {
		return nil, web.Explain(err)
	}
	return io.NopCloser(h.out), nil
}

// impatient ends a connection that is silent for too long.
type impatient struct {
	net.Conn

	stall time.Duration
}

func (c *impatient) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.stall)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errs.New(errs.Unavailable, "the server was silent for %s", c.stall)
	}
	return n, err
}

// clientConfig reads the secret.
func clientConfig(secret *credential.SSH, user, host, temp string) (*ssh.ClientConfig, error) {
	parse := func() (ssh.Signer, error) { return ssh.ParsePrivateKey([]byte(secret.PrivateKey)) }
	if secret.Passphrase != "" {
		parse = func() (ssh.Signer, error) {
			return ssh.ParsePrivateKeyWithPassphrase([]byte(secret.PrivateKey), []byte(secret.Passphrase))
		}
	}
	key, err := parse()
	if err != nil {
		return nil, errs.New(errs.Invalid,
			"the private key of the secret of kind ssh cannot be read, or its passphrase is wrong")
	}
	check, err := knownHosts(secret.KnownHosts, temp)
	if err != nil {
		return nil, err
	}
	return &ssh.ClientConfig{
		User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyCallback: check, HostKeyAlgorithms: algorithms(check, host),
	}, nil
}

// knownHosts reads known hosts; the library takes files alone.
func knownHosts(text, temp string) (check ssh.HostKeyCallback, err error) {
	f, err := os.CreateTemp(temp, "known-hosts-")
	if err != nil {
		return nil, errs.Wrap(errs.Internal, err, "write the known hosts")
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, errs.Wrap(errs.Internal, err, "write the known hosts")
	}
	if check, err = knownhosts.New(f.Name()); err != nil {
		return nil, errs.New(errs.Invalid,
			"the known hosts of the secret of kind ssh cannot be read; they are lines as ssh-keyscan writes them")
	}
	return check, nil
}

// algorithms are those of the keys that are known for a host: asked for others, a server would show a key
// that nobody knows. They are found by showing a key that cannot be known.
func algorithms(check ssh.HostKeyCallback, host string) []string {
	stranger, err := ssh.NewPublicKey(ed25519.PublicKey(make([]byte, ed25519.PublicKeySize)))
	if err != nil {
		return nil
	}
	var known *knownhosts.KeyError
	if !errors.As(check(host, &net.TCPAddr{}, stranger), &known) {
		return nil
	}
	var out []string
	for _, k := range known.Want {
		if t := k.Key.Type(); t == ssh.KeyAlgoRSA { // the same key, signed with better sums
			out = append(out, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
		} else {
			out = append(out, t)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// sshError says what a handshake failed of.
func sshError(err error) error {
	var known *knownhosts.KeyError
	switch {
	case errors.As(err, &known) && len(known.Want) == 0:
		return errs.New(errs.Forbidden,
			"the host is not among the known hosts of the secret of kind ssh; add the line that ssh-keyscan writes, "+
				"once it is checked")
	case errors.As(err, &known):
		return errs.New(errs.Forbidden,
			"the host shows another key than the known hosts of the secret of kind ssh have; somebody may be "+
				"between, or the host has a new key")
	case strings.Contains(err.Error(), "unable to authenticate"):
		return errs.New(errs.Forbidden, "the server refuses the key of the secret of kind ssh")
	default:
		return web.Explain(err)
	}
}
